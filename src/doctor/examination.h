#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "doctor/settings.h"
#include "doctor/surroundings.h"

namespace postflight {

// What a job will leave behind, by its settings and the machine.
struct Examination {
  std::string source;  // "process 4711", the file, or "this environment"
  std::vector<Setting> settings = {};
  std::optional<DumpFolder> folder = {};  // nothing: depends on the job
  ProfilerFacts profiler = {};
  std::optional<RingFacts> ring = {};
  std::vector<Finding> findings = {};
};

}  // namespace postflight
