#pragma once

#include <filesystem>

#include "checkpoint/writing/output_plan.h"

namespace postflight {

// Writes to a file or folder that appears once it is complete and, with
// `verify`, was read back and has the digests of what was read.
Result<Written> write_output(const Checkpoint& checkpoint,
                             const OutputPlan& plan,
                             const std::filesystem::path& target,
                             const OutputOptions& options = {});

}  // namespace postflight
