#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace postflight {

// The time in a line of a log. Most logs have no time zone, so this is the
// host's local time, treated as UTC; a zone is ignored where there is one, so
// that all lines compare alike.
struct LogTime {
  std::int64_t nanoseconds = 0;  // since 1970
  bool has_year = false;         // otherwise it is in 1972

  bool operator==(const LogTime&) const = default;
};

// Removes a time from the front of `text`, with brackets around it and the
// space after it. Recognises 2026-11-15 13:05:06,123, the same with T, _ or
// slashes, syslog (Nov 15 13:05:06), dmesg -T and ctime (Sun Nov 15 13:05:06
// 2026) and glog (E1115 13:05:06.123456, month without its leading zero in
// torch).
std::optional<LogTime> take_log_time(std::string_view& text);

// Gives a time without a year the year that brings it closest to `reference`,
// which has one.
LogTime with_year(LogTime time, LogTime reference);

}  // namespace postflight
