#include "base/units.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace postflight {

namespace {

std::uint64_t rounded(std::uint64_t value, std::uint64_t unit) {
  return value / unit + (value % unit >= unit - unit / 2 ? 1 : 0);
}

// "2 min 5 s", or "2 min" when the second part is 0.
std::string two_parts(std::uint64_t value, std::uint64_t small_per_large,
                      std::string_view large, std::string_view small) {
  const std::uint64_t rest = value % small_per_large;
  const std::string front =
      fmt::format("{} {}", value / small_per_large, large);
  return rest == 0 ? front : fmt::format("{} {} {}", front, rest, small);
}

std::string magnitude(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kPerMicrosecond = 1'000;
  constexpr std::uint64_t kPerMillisecond = 1'000'000;
  constexpr std::uint64_t kPerSecond = 1'000'000'000;
  if (nanoseconds < kPerMicrosecond)
    return fmt::format("{} ns", nanoseconds);
  if (const auto count = rounded(nanoseconds, kPerMicrosecond); count < 1000)
    return fmt::format("{} us", count);
  if (const auto count = rounded(nanoseconds, kPerMillisecond); count < 1000)
    return fmt::format("{} ms", count);
  if (const auto tenths = rounded(nanoseconds, kPerSecond / 10); tenths < 100)
    return tenths % 10 == 0 ? fmt::format("{} s", tenths / 10)
                            : fmt::format("{}.{} s", tenths / 10, tenths % 10);
  const std::uint64_t seconds = rounded(nanoseconds, kPerSecond);
  if (seconds < 60)
    return fmt::format("{} s", seconds);
  if (seconds < 3600)
    return two_parts(seconds, 60, "min", "s");
  const std::uint64_t minutes = rounded(seconds, 60);
  if (minutes < std::uint64_t{24} * 60)
    return two_parts(minutes, 60, "h", "min");
  return two_parts(rounded(minutes, 60), 24, "d", "h");
}

}  // namespace

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"kB", "MB", "GB",
                                                      "TB", "PB", "EB"};
  if (bytes < 1000)
    return fmt::format("{} B", bytes);
  std::uint64_t unit = 1000;
  std::size_t name = 0;
  // A value that would round to 1000 of a unit is 1 of the next.
  while (name + 1 < kUnits.size() && rounded(bytes, unit) >= 1000) {
    unit *= 1000;
    ++name;
  }
  const std::uint64_t tenths = rounded(bytes, unit / 10);
  std::string text =
      fmt::format_int(tenths >= 1000 ? rounded(bytes, unit) : tenths / 10)
          .str();
  if (tenths < 1000)
    text.append({'.', static_cast<char>('0' + tenths % 10)});
  text += ' ';
  return text += kUnits[name];
}

std::string human_duration(std::chrono::nanoseconds duration) {
  const auto count = static_cast<std::uint64_t>(duration.count());
  if (duration.count() >= 0)
    return magnitude(count);
  return "-" + magnitude(0 - count);
}

}  // namespace postflight
