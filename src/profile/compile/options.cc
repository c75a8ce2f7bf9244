#include "profile/compile/options.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/pattern.h"
#include "profile/engine/sampling_interval.h"
#include "profile/process/identity.h"

namespace postflight {
namespace {

constexpr double kMostStack = 4096;

// Reads variables and warns about invalid ones.
class Variables {
 public:
  Variables(const Environment& environment, Log& log)
      : environment_(environment), log_(log) {}

  std::optional<std::string> text(const char* name) const {
    std::optional<std::string> value = environment_(name);
    return value && value->empty() ? std::nullopt : value;
  }

  // A whole number from 1 to `most`; as in torch, 1e7 is one, too.
  std::optional<double> number(const char* name, double most) const {
    const std::optional<std::string> value = environment_(name);
    if (!value)
      return std::nullopt;
    double parsed = 0;
    const char* const end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, parsed);
    if (error == std::errc() && stop == end && parsed >= 1 && parsed <= most &&
        parsed == std::floor(parsed))
      return parsed;
    warn(name, *value);
    return std::nullopt;
  }

  std::optional<std::string> pattern(const char* name) const {
    std::optional<std::string> value = text(name);
    if (!value)
      return std::nullopt;
    if (Pattern::compile(*value))
      return value;
    warn(name, *value);
    return std::nullopt;
  }

  void warn(const char* name, std::string_view value) const {
    log_.write(LogLevel::kWarning, kCompileChannel,
               "{}='{}' is not valid; using the default", name, value);
  }

 private:
  const Environment& environment_;
  Log& log_;
};

std::set<std::string> separated(std::string_view text) {
  std::set<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0)
      parts.emplace(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

}  // namespace

CompileProfileOptions compile_profile_options(const Environment& environment,
                                              Log& log) {
  const Variables variables(environment, log);
  CompileProfileOptions options;
  options.frame_filter = variables.pattern("COMPILE_STROBELIGHT_FRAME_FILTER");
  if (auto ours = variables.pattern("POSTFLIGHT_FRAME_FILTER"))
    options.frame_filter = std::move(ours);
  options.frame_filter_full =
      variables.text("POSTFLIGHT_FRAME_FILTER_FULL") == "1";
  options.frame_exclude = variables.pattern("POSTFLIGHT_FRAME_EXCLUDE");
  for (const char* const name :
       {"COMPILE_STROBELIGHT_MAX_STACK_LENGTH", "POSTFLIGHT_MAX_STACK_LENGTH"})
    if (const auto value = variables.number(name, kMostStack))
      options.max_stack_length = static_cast<std::size_t>(*value);
  for (const char* const name :
       {"COMPILE_STROBELIGHT_MAX_PROFILE_TIME", "POSTFLIGHT_MAX_PROFILE_TIME"})
    if (const auto value = variables.number(name, kMostSeconds))
      options.max_profile_time =
          std::chrono::seconds(static_cast<std::int64_t>(*value));
  if (const auto cycles =
          variables.number("COMPILE_STROBELIGHT_SAMPLE_RATE", 1e12))
    options.sample_each = interval_of_cycles(*cycles);
  if (const auto rate = variables.text("POSTFLIGHT_SAMPLE_RATE")) {
    if (const auto interval = parse_sampling_interval(*rate))
      options.sample_each = *interval;
    else
      variables.warn("POSTFLIGHT_SAMPLE_RATE", *rate);
  }
  options.tags = separated(variables.text("POSTFLIGHT_TAGS").value_or(""));
  options.url_command = variables.text("POSTFLIGHT_URL_COMMAND").value_or("");
  options.user =
      variables.text("USER").value_or(variables.text("USERNAME").value_or(""));
  options.rank = rank_from(environment);
  return options;
}

}  // namespace postflight
