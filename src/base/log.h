#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace postflight {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

// Where the library sends its messages. They have named channels ("zip",
// "unwinder"), each with a level below which messages are dropped: kInfo unless
// set_level() changes it. Thread-safe.
class Log {
 public:
  // Called with one message at a time; must not use the log itself. Messages
  // may quote bytes of a file: escape them before printing.
  using Sink = std::function<void(LogLevel level, std::string_view channel,
                                  std::string_view message)>;

  // Without a sink, everything is dropped.
  explicit Log(Sink sink = nullptr) : sink_(std::move(sink)) {}

  LogLevel level(std::string_view channel) const;
  // Returns the previous level.
  LogLevel set_level(std::string_view channel, LogLevel level);

  template <class... Args>
  void write(LogLevel level, std::string_view channel,
             fmt::format_string<Args...> format, Args&&... args) {
    if (takes(level, channel))
      deliver(level, channel, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  bool takes(LogLevel level, std::string_view channel) const;
  void deliver(LogLevel level, std::string_view channel,
               std::string_view message);

  const Sink sink_;
  // Two locks, so that a slow sink does not block level checks.
  mutable std::mutex levels_mutex_;
  std::map<std::string, LogLevel, std::less<>> levels_;
  std::mutex sink_mutex_;
};

// Sets one channel's level until the end of the scope.
class ScopedLogLevel {
 public:
  ScopedLogLevel(Log& log, std::string_view channel, LogLevel level)
      : log_(log),
        channel_(channel),
        previous_(log.set_level(channel, level)) {}
  ~ScopedLogLevel() { log_.set_level(channel_, previous_); }
  ScopedLogLevel(const ScopedLogLevel&) = delete;
  ScopedLogLevel& operator=(const ScopedLogLevel&) = delete;

 private:
  Log& log_;
  const std::string channel_;
  const LogLevel previous_;
};

}  // namespace postflight
