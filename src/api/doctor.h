#pragma once

// What a job will leave behind, by its settings and the machine.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/error.h"
#include "doctor/examination.h"

namespace postflight {

struct DoctorRequest {
  // At most one: a process, a file of variables, or a Slurm script; without
  // any, this process's own environment. "-" is standard input.
  std::optional<std::int32_t> pid = {};
  std::string environment_file = {};
  std::string slurm_script = {};
  std::vector<std::string> dumps = {};  // to measure the ring; may be empty
};

Result<Examination> examine(const DoctorRequest& request,
                            const Context& context);

}  // namespace postflight
