#include "report/json_number.h"

#include <cmath>

#include <fmt/format.h>

namespace postflight {

std::string json_integer(std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  if (value > kMost || value < -kMost)
    return json_id(value);
  return fmt::format("{}", value);
}

std::string json_double(double value) {
  if (std::isnan(value))
    return "\"NaN\"";
  if (std::isinf(value))
    return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return fmt::format("{}", value);
}

std::string json_id(std::int64_t value) {
  return fmt::format("\"{}\"", value);
}

std::string json_time(std::int64_t nanoseconds) {
  return nanoseconds == 0 ? "null" : json_id(nanoseconds);
}

}  // namespace postflight
