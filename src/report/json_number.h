#pragma once

#include <cstdint>
#include <string>

namespace postflight {

// Numbers as every JSON answer has them: integers beyond 2^53 either way as
// strings, and "NaN", "Infinity" and "-Infinity".
std::string json_integer(std::int64_t value);
std::string json_double(double value);

// Ids and nanoseconds, always strings.
std::string json_id(std::int64_t value);
// null for 0, which stands for "not recorded".
std::string json_time(std::int64_t nanoseconds);

}  // namespace postflight
