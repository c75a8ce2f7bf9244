#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace postflight {

// A time as a line of a log has it. Logs say no time zone, so this is the
// host's own wall clock, counted as if it were UTC; one zone that a line does
// say is left aside, to stay comparable with those that don't.
struct LogTime {
  std::int64_t nanoseconds = 0;  // since 1970
  bool has_year = false;         // else it is counted in 1972

  bool operator==(const LogTime&) const = default;
};

// Takes a time off the front of `text`, with brackets around it and the space
// behind. Knows 2026-11-15 13:05:06,123, the same with T, _ or slashes, syslog
// (Nov 15 13:05:06), dmesg -T and ctime (Sun Nov 15 13:05:06 2026) and glog
// (E1115 13:05:06.123456, month without its leading zero in torch).
std::optional<LogTime> take_log_time(std::string_view& text);

// A time without a year is put into that which brings it closest to
// `reference`, which has one.
LogTime with_year(LogTime time, LogTime reference);

}  // namespace postflight
