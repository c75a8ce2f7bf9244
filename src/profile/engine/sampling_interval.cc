#include "profile/engine/sampling_interval.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/file.h"

namespace postflight {
namespace {

using std::chrono::nanoseconds;

// A shorter interval would leave no time for the program; a longer one is not
// useful.
constexpr nanoseconds kShortest{100'000};
constexpr nanoseconds kLongest{10'000'000'000};

std::optional<std::pair<double, std::string_view>> number_and_unit(
    std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !(value > 0))
    return std::nullopt;
  return std::pair(
      value, std::string_view(stop, static_cast<std::size_t>(end - stop)));
}

// The speed of the first processor, by /proc/cpuinfo.
double cycles_per_second() {
  constexpr double kUsual = 3e9;
  const Result<MappedFile> file = MappedFile::open("/proc/cpuinfo");
  if (!file)
    return kUsual;
  std::string_view text = as_text(file->bytes());
  const std::size_t at = text.find("cpu MHz");
  if (at == std::string_view::npos)
    return kUsual;
  text.remove_prefix(std::min(text.find(':', at), text.size() - 1) + 1);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto megahertz = number_and_unit(text);
  return megahertz && megahertz->first > 100 ? megahertz->first * 1e6 : kUsual;
}

}  // namespace

nanoseconds interval_of_cycles(double cycles) {
  const double ns = cycles / cycles_per_second() * 1e9;
  return nanoseconds(static_cast<std::int64_t>(std::min(ns, 1e10)));
}

Result<nanoseconds> parse_sampling_interval(std::string_view text) {
  const auto parsed = number_and_unit(text);
  const auto [value, unit] =
      parsed.value_or(std::pair(1.0, std::string_view("?")));
  double ns = 0;
  if (unit.empty() || unit == "Hz")
    ns = 1e9 / value;
  else if (unit == "s")
    ns = value * 1e9;
  else if (unit == "ms")
    ns = value * 1e6;
  else if (unit == "us")
    ns = value * 1e3;
  else if (unit == "ns")
    ns = value;
  else if (unit == "cycles")
    ns = static_cast<double>(interval_of_cycles(value).count());
  else
    return fail(ErrorKind::kUsage,
                "'{}' is not a valid rate: give 99, 5ms or 10000000cycles",
                text);
  if (ns < static_cast<double>(kShortest.count()) ||
      ns > static_cast<double>(kLongest.count()))
    return fail(
        ErrorKind::kUsage,
        "'{}' is not a valid rate: give 0.1 to 10000 samples per second", text);
  return nanoseconds(static_cast<std::int64_t>(ns));
}

Result<nanoseconds> parse_profile_duration(std::string_view text) {
  if (const auto parsed = number_and_unit(text)) {
    const auto [value, unit] = *parsed;
    const double seconds = unit.empty() || unit == "s" ? 1
                           : unit == "ms"              ? 1e-3
                           : unit == "m"               ? 60
                           : unit == "h"               ? 3600
                                                       : 0;
    if (seconds > 0 && value * seconds <= kMostSeconds)
      return nanoseconds(static_cast<std::int64_t>(value * seconds * 1e9));
  }
  return fail(ErrorKind::kUsage,
              "'{}' is not a valid duration: give 30s, 500ms, 5m or 2h", text);
}

}  // namespace postflight
