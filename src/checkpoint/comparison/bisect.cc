#include "checkpoint/comparison/bisect.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/ascii.h"
#include "checkpoint/comparison/health.h"

namespace postflight {
namespace {

constexpr std::array<std::string_view, 8> kStatistics = {
    "min", "max", "mean", "std", "nan", "inf", "zero", "denormal"};

std::optional<double> statistic_named(const TensorStatistics& found,
                                      std::string_view name) {
  const auto as_double = [](const std::optional<Extreme>& extreme) {
    return extreme ? std::optional(std::visit(
                         [](auto value) { return static_cast<double>(value); },
                         *extreme))
                   : std::nullopt;
  };
  if (name == "min")
    return as_double(found.minimum);
  if (name == "max")
    return as_double(found.maximum);
  if (name == "mean")
    return found.mean;
  if (name == "std")
    return found.deviation;
  return static_cast<double>(name == "nan"    ? found.nan
                             : name == "inf"  ? found.infinite
                             : name == "zero" ? found.zero
                                              : found.denormal);
}

bool holds(double value, std::string_view comparison, double number) {
  if (comparison == ">")
    return value > number;
  if (comparison == ">=")
    return value >= number;
  if (comparison == "<")
    return value < number;
  return value <= number;
}

tl::unexpected<Error> not_a_condition(const std::string& text) {
  return fail(ErrorKind::kUsage,
              "'{}' is not a condition: give nan, inf, zero, constant, "
              "denormal or outlier, or keys and a statistic such as "
              "'*.weight std>5'",
              text);
}

}  // namespace

Result<Condition> Condition::parse(const std::string& text) {
  Condition condition;
  const std::span<const std::string_view> signs = health_signs();
  if (std::ranges::find(signs, text) != signs.end()) {
    condition.sign_ = text;
    return condition;
  }
  const std::size_t space = text.rfind(' ');
  const std::size_t compares = text.find_first_of("<>", space + 1);
  if (space == std::string::npos || compares == std::string::npos)
    return not_a_condition(text);
  condition.keys_ = TRY(
      KeyFilter::make({std::string(trimmed(text.substr(0, space), " "))}, {}));
  condition.statistic_ = text.substr(space + 1, compares - space - 1);
  const bool equals = text.compare(compares + 1, 1, "=") == 0;
  condition.comparison_ = text.substr(compares, equals ? 2 : 1);
  const std::string number =
      text.substr(compares + condition.comparison_.size());
  char* end = nullptr;
  condition.number_ = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' ||
      std::ranges::find(kStatistics, condition.statistic_) == kStatistics.end())
    return not_a_condition(text);
  return condition;
}

Result<std::optional<std::string>> Condition::met_by(
    const Checkpoint& checkpoint) const {
  std::vector<std::uint32_t> nodes;
  const auto count = static_cast<std::uint32_t>(checkpoint.nodes().size());
  for (std::uint32_t node = 0; node < count; ++node) {
    const Tensor* const tensor = checkpoint.tensor_at(node);
    if (tensor != nullptr && !tensor->has_parts() &&
        tensor->storage != kNoIndex && keys_.picks(checkpoint, node))
      nodes.push_back(node);
  }
  const CheckpointHealth health = TRY(examine(checkpoint, nodes));
  for (const TensorHealth& one : health.tensors) {
    const std::string key = checkpoint.path_of(one.node);
    if (!one.statistics)
      return fail(one.statistics.error().kind(), "{}: {}", key,
                  one.statistics.error().message());
    if (!sign_.empty()) {
      if (std::ranges::find(one.signs, sign_) != one.signs.end())
        return std::optional(fmt::format("{}: {}", key, sign_));
      continue;
    }
    const auto value = statistic_named(*one.statistics, statistic_);
    if (value && holds(*value, comparison_, number_))
      return std::optional(
          fmt::format("{}: {} is {:.6g}", key, statistic_, *value));
  }
  return std::optional<std::string>();
}

Result<Bisection> bisect(
    std::span<const RunStep> steps, const Condition& condition,
    const Context& context,
    const std::function<void(const RunStep& step, bool met)>& looked_at) {
  Bisection found;
  std::size_t low = 0;
  std::size_t high = steps.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const std::string path = steps[middle].path.string();
    const Checkpoint checkpoint = TRY(
        Checkpoint::open(steps[middle].path, {.context = context}).in(path));
    std::optional<std::string> how = TRY(condition.met_by(checkpoint).in(path));
    ++found.read;
    looked_at(steps[middle], how.has_value());
    if (how) {
      high = middle;
      found.first = middle;
      found.how = std::move(*how);
    } else {
      low = middle + 1;
    }
  }
  return found;
}

}  // namespace postflight
