#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/comparison/history.h"
#include "checkpoint/key_filter.h"

namespace postflight {

// A condition on a checkpoint: a sign of examine() ("nan"), which any tensor
// may show, or "KEYS STATISTIC>NUMBER" ("*layer.3* std>5", "head.weight
// max<=1e-3"), where any tensor whose key matches counts.
class Condition {
 public:
  static Result<Condition> parse(const std::string& text);

  // The first tensor that meets it, and how; empty if none does.
  Result<std::optional<std::string>> met_by(const Checkpoint& checkpoint) const;

 private:
  std::string sign_;  // or else:
  KeyFilter keys_;
  std::string statistic_;
  std::string comparison_;
  double number_ = 0;
};

struct Bisection {
  std::optional<std::size_t> first;  // index of the first step that meets it
  std::string how = {};              // which tensor meets it there
  std::size_t read = 0;              // steps that were read
};

// Finds the first step from which on a condition is met, as something that
// broke stays broken, by reading about log2 of them. `steps` can all be read.
Result<Bisection> bisect(
    std::span<const RunStep> steps, const Condition& condition,
    const Context& context,
    const std::function<void(const RunStep& step, bool met)>& looked_at);

}  // namespace postflight
