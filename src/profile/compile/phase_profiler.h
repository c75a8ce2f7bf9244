#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "base/error.h"

namespace postflight {

// What a profiler of phases is made with; the names are those that torch gives
// its profiler_class.
struct PhaseProfilerOptions {
  std::chrono::nanoseconds sample_each{3'333'333};
  std::chrono::seconds max_profile_duration{1800};
  std::size_t stack_max_len = 500;
  std::string run_user_name = {};
  std::set<std::string> sample_tags = {};
};

// One phase that is profiled.
struct PhaseRun {
  std::string phase = {};
  std::string frame_id = {};
};

struct PhaseProfile {
  std::uint64_t samples = 0;
  bool truncated = false;  // the longest duration was over before the phase
};

// Whatever profiles phases. A seam: any other profiler can be put behind it.
// What it does wrong, by an error or an exception, is counted and has no other
// effect on the program.
class PhaseProfiler {
 public:
  virtual ~PhaseProfiler() = default;

  // Whether phases of several threads can be profiled at a time.
  virtual bool concurrent() const { return true; }
  virtual Result<> start(const PhaseRun& run) = 0;
  // Called once for each start() that went well, by the same thread.
  virtual Result<PhaseProfile> stop(const PhaseRun& run) = 0;
};

}  // namespace postflight
