#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/finding.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/statistics.h"

namespace postflight {

// The statistics of one tensor, and what looks wrong about them.
struct TensorHealth {
  std::uint32_t node = 0;
  Result<TensorStatistics> statistics;
  std::vector<std::string> signs;  // "nan", "inf", "zero", ...
};

struct HealthOptions {
  // Signs that are errors; others are warnings.
  std::vector<std::string> fail_on = {"nan", "inf"};
  std::function<void(std::uint64_t bytes)> progress = {};
};

// What stats can say of a tensor, in the order of --help.
std::span<const std::string_view> health_signs();

struct CheckpointHealth {
  std::vector<TensorHealth> tensors;
  std::vector<Finding> findings;
};

// Reads the tensors at `nodes` that have numbers, on several threads, and
// applies the rules:
//   nan, inf     some elements are
//   zero         all elements of a weight are 0
//   constant     all are the same number, neither 0 nor 1
//   denormal     more than a tenth is too small for full precision
//   outlier      the largest magnitude is 100 times that of its sisters: the
//                tensors whose keys differ in a number only
Result<CheckpointHealth> examine(const Checkpoint& checkpoint,
                                 std::span<const std::uint32_t> nodes,
                                 const HealthOptions& options = {});

}  // namespace postflight
