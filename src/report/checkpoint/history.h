#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/output.h"
#include "base/terminal.h"
#include "checkpoint/comparison/bisect.h"
#include "checkpoint/comparison/history.h"

namespace postflight {

struct ListedStep {
  RunStep step;
  StepState state;
};

// A line for each step of a run; or schema postflight.ckpt.log/1.
void write_log(std::string_view run, std::span<const ListedStep> steps,
               const std::optional<std::string>& stated,
               const Terminal& terminal, Output& out);
void write_log_json(std::string_view run, std::span<const ListedStep> steps,
                    const std::optional<std::string>& stated, Output& out);
// The newest whole step, if there is one; schema postflight.ckpt.latest/1.
void write_latest_json(std::string_view run, const ListedStep* latest,
                       std::span<const ListedStep> newer, Output& out);

// A step that was read on the way, and whether it meets the condition.
struct LookedAt {
  RunStep step;
  bool met = false;
};

struct BisectReport {
  std::string_view run;
  std::string_view condition;
  std::span<const RunStep> steps;
  std::span<const LookedAt> looked_at;
  std::size_t all = 0;  // steps, with those that could not be read
};

// The first step that meets a condition; schema postflight.ckpt.bisect/1.
void write_bisection(const BisectReport& report, const Bisection& found,
                     const Terminal& terminal, Output& out);
void write_bisection_json(const BisectReport& report, const Bisection& found,
                          Output& out);

}  // namespace postflight
