#include "checkpoint/comparison/health.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "base/ascii.h"
#include "base/worker_pool.h"
#include "checkpoint/inspection.h"

namespace postflight {
namespace {

constexpr std::array<std::string_view, 6> kSigns = {
    "nan", "inf", "zero", "constant", "denormal", "outlier"};

double number(const Extreme& extreme) {
  return std::visit([](auto value) { return static_cast<double>(value); },
                    extreme);
}

double largest_magnitude(const TensorStatistics& found) {
  return found.minimum ? std::max(std::abs(number(*found.minimum)),
                                  std::abs(number(*found.maximum)))
                       : 0;
}

bool is_floating(const Dtype& dtype) {
  return dtype.numeric == Numeric::kFloat ||
         dtype.numeric == Numeric::kBfloat16 || is_float8(dtype.numeric) ||
         dtype.numeric == Numeric::kComplex;
}

// "model.layers.*.weight" for all layers.
std::string family_of(std::string_view key) {
  std::string family;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (!is_digit(key[i]))
      family += key[i];
    else if (i == 0 || !is_digit(key[i - 1]))
      family += '*';
  }
  return family;
}

// What the numbers of one tensor say. Scalars and moments of an optimizer that
// has made no step are often all 0, so that is a sign for weights only.
std::vector<std::string> signs_of(const Tensor& tensor, std::string_view key,
                                  const TensorStatistics& found) {
  std::vector<std::string> signs;
  if (!is_floating(tensor.dtype) || found.elements == 0)
    return signs;
  if (found.nan > 0)
    signs.emplace_back("nan");
  if (found.infinite > 0)
    signs.emplace_back("inf");
  constexpr std::uint64_t kFew = 16;
  const std::uint64_t finite = found.elements - found.nan - found.infinite;
  if (finite < kFew)
    return signs;
  const bool is_weight = key.ends_with("weight") || key.ends_with("kernel") ||
                         tensor.shape.size() >= 2;
  const bool constant = *found.minimum == *found.maximum;
  if (constant && found.zero == finite) {
    if (is_weight)
      signs.emplace_back("zero");
  } else if (constant && number(*found.minimum) != 1) {
    signs.emplace_back("constant");
  }
  constexpr std::uint64_t kTenth = 10;
  if (found.denormal > finite / kTenth)
    signs.emplace_back("denormal");
  return signs;
}

std::string sentence(std::string_view sign, const TensorStatistics& found,
                     const std::string& sisters) {
  const auto share = [&found](std::uint64_t count) {
    return fmt::format("{} of {} elements", count, found.elements);
  };
  if (sign == "nan")
    return share(found.nan) + " are NaN";
  if (sign == "inf")
    return share(found.infinite) + " are infinite";
  if (sign == "zero")
    return "all elements are 0: was it loaded or initialised?";
  if (sign == "constant")
    return fmt::format("all elements are {:.6g}", number(*found.minimum));
  if (sign == "denormal")
    return share(found.denormal) +
           " are denormal: too small for their dtype's full precision";
  return fmt::format("its largest magnitude, {:.4g}, is far from {}",
                     largest_magnitude(found), sisters);
}

}  // namespace

std::span<const std::string_view> health_signs() {
  return kSigns;
}

Result<CheckpointHealth> examine(const Checkpoint& checkpoint,
                                 std::span<const std::uint32_t> nodes,
                                 const HealthOptions& options) {
  CheckpointHealth health;
  const WorkerPool pool(checkpoint.context().threads);
  TRY(pool.map_ordered(
      nodes.size(),
      [&](std::size_t i) {
        return inspect(checkpoint, *checkpoint.tensor_at(nodes[i]), "");
      },
      [&](std::size_t i, Result<Inspection> found) -> Result<> {
        const Tensor& tensor = *checkpoint.tensor_at(nodes[i]);
        if (options.progress)
          options.progress(tensor.bytes());
        if (!found) {
          health.findings.push_back({"unreadable_tensor", Severity::kError,
                                     std::string(found.error().message()),
                                     checkpoint.path_of(nodes[i])});
          health.tensors.push_back(
              {nodes[i], tl::unexpected(std::move(found.error())), {}});
          return {};
        }
        if (!found->statistics)
          return {};
        TensorHealth one{nodes[i], *found->statistics, {}};
        one.signs =
            signs_of(tensor, checkpoint.path_of(nodes[i]), *one.statistics);
        health.tensors.push_back(std::move(one));
        return {};
      }));

  std::map<std::string, std::vector<double>> families;
  const auto takes_part = [&](const TensorHealth& one) {
    return one.statistics && one.statistics->minimum.has_value() &&
           is_floating(checkpoint.tensor_at(one.node)->dtype);
  };
  for (const TensorHealth& one : health.tensors)
    if (takes_part(one))
      families[family_of(checkpoint.path_of(one.node))].push_back(
          largest_magnitude(*one.statistics));
  constexpr std::size_t kEnoughSisters = 5;
  constexpr double kFar = 100;
  for (auto& [family, magnitudes] : families)
    std::ranges::sort(magnitudes);
  for (TensorHealth& one : health.tensors) {
    std::string sisters;
    if (takes_part(one)) {
      const std::string family = family_of(checkpoint.path_of(one.node));
      const std::vector<double>& magnitudes = families[family];
      const double middle = magnitudes[magnitudes.size() / 2];
      if (magnitudes.size() >= kEnoughSisters && middle > 0 &&
          largest_magnitude(*one.statistics) > kFar * middle) {
        one.signs.emplace_back("outlier");
        sisters = fmt::format("{:.4g}, the median of {}", middle, family);
      }
    }
    for (const std::string& sign : one.signs)
      health.findings.push_back(
          {sign,
           std::ranges::find(options.fail_on, sign) != options.fail_on.end()
               ? Severity::kError
               : Severity::kWarning,
           sentence(sign, *one.statistics, sisters),
           checkpoint.path_of(one.node)});
  }
  return health;
}

}  // namespace postflight
