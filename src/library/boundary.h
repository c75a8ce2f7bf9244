#pragma once

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <postflight/postflight.h>

#include "base/error.h"
#include "base/interruption.h"
#include "base/output.h"

// What every function of the C interface does at its edge: no exception leaves
// it, and errors become objects that the caller owns.

struct postflight_error {
  postflight_status status;
  std::string message;
};

struct postflight_text {
  std::string text;
};

namespace postflight {

inline postflight_string as_string(std::string_view text) {
  return {text.data(), text.size()};
}

inline std::string text_or_empty(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

// Hands an error to the caller, if he wants it, and returns its status.
postflight_status report(const Error& error, postflight_error** to);
postflight_status report_no_memory(postflight_error** to);
postflight_status report_interrupted(postflight_error** to);
postflight_status report_exception(const std::exception& exception,
                                   postflight_error** to);

// Thrown by what is interruptible(). The only exception of ours: every error on
// the way, which says why something could not be done, would be wrong.
struct Interrupted {};

// Runs `body`, which returns Result<>.
template <class Body>
postflight_status guarded(postflight_error** error, Body&& body) noexcept {
  try {
    const Result<> done = std::forward<Body>(body)();
    return done ? POSTFLIGHT_OK : report(done.error(), error);
  } catch (const Interrupted&) {
    return report_interrupted(error);
  } catch (const std::bad_alloc&) {
    return report_no_memory(error);
  } catch (const std::exception& exception) {
    return report_exception(exception, error);
  }
}

// A handle or what handles share, from its members.
template <class T, class... Members>
std::unique_ptr<T> from_members(Members&&... members) {
  return std::unique_ptr<T>(new T{std::forward<Members>(members)...});
}
template <class T, class... Members>
std::shared_ptr<T> shared_from_members(Members&&... members) {
  return from_members<T>(std::forward<Members>(members)...);
}

// Hands a handle to the caller, unless he has interrupted the call: a part of
// the answer may be missing.
template <class Handle>
void hand_out(std::unique_ptr<Handle> handle, Handle** to) {
  const Interruption* const call = Interruption::current();
  if (call == nullptr || !call->happened())
    *to = handle.release();
}

inline void hand_out(std::string text, postflight_text** to) {
  hand_out(from_members<postflight_text>(std::move(text)), to);
}

// What `write`, given an Output, writes.
template <class Write>
std::string written(Write&& write) {
  std::string text;
  Output out([&text](std::string_view piece) { text += piece; });
  std::forward<Write>(write)(out);
  out.flush();
  return text;
}

}  // namespace postflight
