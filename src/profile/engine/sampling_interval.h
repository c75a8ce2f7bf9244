#pragma once

#include <chrono>
#include <string_view>

#include "base/error.h"

namespace postflight {

// One year: longer than any job, and far from overflow.
constexpr double kMostSeconds = 31'536'000;

// The interval of a rate: "99" or "99Hz" per second, an interval such as "5ms",
// "200us" or "1000000ns", or "10000000cycles" at the processor's nominal speed.
Result<std::chrono::nanoseconds> parse_sampling_interval(std::string_view text);

// How long this many cycles take at nominal speed. Processors change their
// speed, so this only approximates what the hardware would count.
std::chrono::nanoseconds interval_of_cycles(double cycles);

// "30s", "500ms", "5m", "2h"; a plain number is seconds.
Result<std::chrono::nanoseconds> parse_profile_duration(std::string_view text);

}  // namespace postflight
