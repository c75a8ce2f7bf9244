#include "library/boundary.h"

namespace postflight {
namespace {

postflight_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kIo:
      return POSTFLIGHT_IO;
    case ErrorKind::kCorrupt:
      return POSTFLIGHT_CORRUPT;
    case ErrorKind::kUnsupported:
      return POSTFLIGHT_UNSUPPORTED;
    case ErrorKind::kRefused:
      return POSTFLIGHT_REFUSED;
    case ErrorKind::kUsage:
      return POSTFLIGHT_USAGE;
  }
  return POSTFLIGHT_USAGE;
}

// For when there is no memory to make one; never freed.
postflight_error* no_memory() {
  static postflight_error error = {POSTFLIGHT_NO_MEMORY, "out of memory"};
  return &error;
}

void hand_error(postflight_status status, std::string_view message,
                postflight_error** to) {
  if (to == nullptr)
    return;
  try {
    *to = new postflight_error{status, std::string(message)};
  } catch (const std::bad_alloc&) {
    *to = no_memory();
  }
}

}  // namespace

postflight_status report(const Error& error, postflight_error** to) {
  const postflight_status status = status_of(error.kind());
  hand_error(status, error.message(), to);
  return status;
}

postflight_status report_no_memory(postflight_error** to) {
  if (to != nullptr)
    *to = no_memory();
  return POSTFLIGHT_NO_MEMORY;
}

postflight_status report_interrupted(postflight_error** to) {
  hand_error(POSTFLIGHT_INTERRUPTED, "interrupted", to);
  return POSTFLIGHT_INTERRUPTED;
}

postflight_status report_exception(const std::exception& exception,
                                   postflight_error** to) {
  // The standard library's own, such as a thread that cannot be started.
  hand_error(POSTFLIGHT_IO, exception.what(), to);
  return POSTFLIGHT_IO;
}

}  // namespace postflight

using postflight::no_memory;

postflight_status postflight_error_status(const postflight_error* error) {
  return error == nullptr ? POSTFLIGHT_OK : error->status;
}

const char* postflight_error_message(const postflight_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}

void postflight_error_free(postflight_error* error) {
  if (error != no_memory())
    delete error;
}

const char* postflight_text_data(const postflight_text* text) {
  return text == nullptr ? "" : text->text.c_str();
}

size_t postflight_text_size(const postflight_text* text) {
  return text == nullptr ? 0 : text->text.size();
}

void postflight_text_free(postflight_text* text) {
  delete text;
}

const char* postflight_version(void) {
  return POSTFLIGHT_VERSION;
}

uint32_t postflight_abi(void) {
  return POSTFLIGHT_ABI;
}
