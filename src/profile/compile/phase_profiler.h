#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "base/error.h"

namespace postflight {

// Options of a PhaseProfiler; the names are those that torch passes to its
// profiler_class.
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
  bool truncated = false;  // the maximum duration ended before the phase
};

// Profiles phases. A seam: any profiler can implement it. Its errors and
// exceptions are counted and have no other effect on the program.
class PhaseProfiler {
 public:
  virtual ~PhaseProfiler() = default;

  // Whether phases of several threads can be profiled at the same time.
  virtual bool concurrent() const { return true; }
  virtual Result<> start(const PhaseRun& run) = 0;
  // Called once for each successful start(), by the same thread.
  virtual Result<PhaseProfile> stop(const PhaseRun& run) = 0;
};

}  // namespace postflight
