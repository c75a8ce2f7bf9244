#pragma once

#include <string_view>

#include "base/output.h"
#include "base/terminal.h"
#include "checkpoint/comparison/difference.h"
#include "checkpoint/comparison/health.h"

namespace postflight {

struct ComparedNames {
  std::string_view before;
  std::string_view after;
};

// How two checkpoints differ, the first 20 tensors or all; or schema
// postflight.ckpt.diff/1.
void write_difference(const ComparedNames& names, const Checkpoint& before,
                      const Checkpoint& after,
                      const CheckpointDifference& found, bool all,
                      const Terminal& terminal, Output& out);
void write_difference_json(const ComparedNames& names, const Checkpoint& before,
                           const Checkpoint& after,
                           const CheckpointDifference& found, Output& out);

// A line for each tensor, then what looks wrong; or schema
// postflight.ckpt.stats/1.
void write_health(std::string_view name, const Checkpoint& checkpoint,
                  const CheckpointHealth& health, const Terminal& terminal,
                  Output& out);
void write_health_json(std::string_view name, const Checkpoint& checkpoint,
                       const CheckpointHealth& health, Output& out);

}  // namespace postflight
