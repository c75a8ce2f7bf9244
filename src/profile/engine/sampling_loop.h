#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "profile/engine/sampled_process.h"
#include "profile/log/log.h"
#include "profile/log/profile.h"

namespace postflight {

struct EngineOptions {
  std::chrono::nanoseconds interval{10'101'010};  // 99 Hz
  std::chrono::nanoseconds duration{0};           // 0: until the end
  bool children = true;
  // Which phases, by their full names and frame ids, are worth a sample; null:
  // all, and the time outside of phases.
  std::function<bool(const std::string& name, const std::string& frame_id)>
      phase_filter = nullptr;
  SamplingOptions sampling = {};
};

// Samples a process and those it starts, from outside, into a log.
class SamplingLoop {
 public:
  // `log` has to outlive it.
  SamplingLoop(const EngineOptions& options, ProfileLogWriter& log);

  void add(pid_t pid);
  // Samples until all processes have ended, the time is over or `go_on`, asked
  // before every sample, says no.
  Result<> run(const std::function<bool()>& go_on);

  // From any thread.
  std::uint64_t samples() const { return samples_; }
  // What kept frames of Python from being read; empty if nothing did.
  const std::string& trouble() const { return trouble_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void tick(Time now, std::chrono::nanoseconds passed);
  void look_for_children(Time now);
  void look_for_agents(Time now);
  void remove_files(pid_t pid) const;
  void inherit_phases();
  void note_engine(const SampledProcess& process);
  bool wanted(std::uint32_t phase);
  Result<> save();

  const EngineOptions options_;
  ProfileLogWriter& log_;
  ProfileBuilder profile_;
  PythonLocator locator_;
  SharedProcessor processor_;
  std::map<pid_t, std::unique_ptr<SampledProcess>> processes_;
  std::map<pid_t, pid_t> parents_;
  std::map<std::uint32_t, bool> wanted_phases_;
  std::vector<ProfileSample> taken_;  // in this tick
  std::string trouble_;
  std::string python_;  // the version first seen
  bool engine_noted_ = false;
  std::uint64_t last_time_ = 0;
  // What processes that are gone have counted.
  struct Counts {
    std::uint64_t lost = 0;
    std::uint64_t unproven = 0;
    HandlerTimes handler_times = {};

    void add(const SampledProcess& process);
  };
  Counts gone_;
  Time start_ = {};
  Time next_children_ = {};
  Time next_agents_ = {};
  Time next_flush_ = {};
  std::atomic<std::uint64_t> samples_ = 0;
  std::uint64_t filtered_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t torn_ = 0;
  std::uint64_t cut_ = 0;
  std::uint64_t unreadable_ = 0;
};

// Whether the memory of a process may be read; the error says what would help.
Result<> check_permission(pid_t pid);

}  // namespace postflight
