#include "library/context.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "library/boundary.h"

namespace postflight {
namespace {

constexpr auto kLimits =
    std::to_array<std::pair<std::string_view, std::uint64_t Limits::*>>({
        {"max_archive_entries", &Limits::max_archive_entries},
        {"max_dump_bytes", &Limits::max_dump_bytes},
        {"max_inflated_bytes", &Limits::max_inflated_bytes},
        {"max_materialised_bytes", &Limits::max_materialised_bytes},
        {"max_pickles", &Limits::max_pickles},
        {"max_pipe_bytes", &Limits::max_pipe_bytes},
        {"max_stream_block_bytes", &Limits::max_stream_block_bytes},
        {"max_value_bytes", &Limits::max_value_bytes},
        {"max_window_bytes", &Limits::max_window_bytes},
    });

}  // namespace

SharedContext::SharedContext()
    : log([this](LogLevel level, std::string_view channel,
                 std::string_view message) {
        if (log_function != nullptr)
          log_function(log_user, static_cast<postflight_log_level>(level),
                       std::string(channel).c_str(),
                       std::string(message).c_str());
      }) {
  context.log = &log;
}

// One thread at a time; and not again by what the function itself calls. A
// child that was forked meanwhile has another id.
bool SharedContext::asked_to_end() {
  const pid_t self = ::getpid();
  pid_t before = asking_;
  if (before == self || !asking_.compare_exchange_strong(before, self))
    return false;
  const bool end = interrupt_function(interrupt_user) != 0;
  asking_ = 0;
  return end;
}

std::shared_ptr<SharedContext> shared_context(postflight_context* context) {
  return context != nullptr ? context->shared
                            : std::make_shared<SharedContext>();
}

}  // namespace postflight

using namespace postflight;

postflight_status postflight_context_new(postflight_context** context,
                                         postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    hand_out(
        from_members<postflight_context>(std::make_shared<SharedContext>()),
        context);
    return {};
  });
}

void postflight_context_free(postflight_context* context) {
  delete context;
}

void postflight_context_set_threads(postflight_context* context,
                                    size_t threads) {
  context->shared->context.threads = threads;
}

void postflight_context_set_log(postflight_context* context,
                                postflight_log_function function, void* user) {
  context->shared->log_function = function;
  context->shared->log_user = user;
}

void postflight_context_set_interrupt(postflight_context* context,
                                      postflight_interrupt_function function,
                                      void* user) {
  context->shared->interrupt_function = function;
  context->shared->interrupt_user = user;
}

postflight_status postflight_context_set_log_level(postflight_context* context,
                                                   const char* channel,
                                                   postflight_log_level level,
                                                   postflight_log_level* before,
                                                   postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    if (level < POSTFLIGHT_DEBUG || level > POSTFLIGHT_ERROR)
      return fail(ErrorKind::kUsage, "{} is not a log level",
                  static_cast<int>(level));
    const LogLevel previous =
        context->shared->log.set_level(channel, static_cast<LogLevel>(level));
    if (before != nullptr)
      *before = static_cast<postflight_log_level>(previous);
    return {};
  });
}

postflight_status postflight_context_set_limit(postflight_context* context,
                                               const char* name, uint64_t value,
                                               postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    for (const auto& [known, limit] : kLimits)
      if (known == name) {
        context->shared->context.limits.*limit = value;
        return {};
      }
    return fail(ErrorKind::kUsage, "there is no limit called {}", name);
  });
}
