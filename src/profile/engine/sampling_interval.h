#pragma once

#include <chrono>
#include <string_view>

#include "base/error.h"

namespace postflight {

// A year is longer than any job, and far from overflowing.
constexpr double kMostSeconds = 31'536'000;

// How often samples are taken: "99" or "99Hz" a second, every "5ms", "200us" or
// "1000000ns", or every "10000000cycles" of a processor at its nominal speed.
Result<std::chrono::nanoseconds> parse_sampling_interval(std::string_view text);

// What that many cycles take on this machine; processors change their speed,
// so this is only near what the hardware would count.
std::chrono::nanoseconds interval_of_cycles(double cycles);

// "30s", "500ms", "5m", "2h"; a plain number is seconds.
Result<std::chrono::nanoseconds> parse_profile_duration(std::string_view text);

}  // namespace postflight
