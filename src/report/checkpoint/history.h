#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/output.h"
#include "base/terminal.h"
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

}  // namespace postflight
