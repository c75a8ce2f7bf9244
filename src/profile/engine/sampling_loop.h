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

// Samples a process and those it starts into a log, each with its own engine.
class SamplingLoop {
 public:
  // `log` must outlive it.
  SamplingLoop(const SamplingOptions& options, const Context& context,
               ProfileLogWriter& log);

  // `whole`: it is just being started, so all of its CPU time is part of the
  // profile.
  void add(pid_t pid, bool whole = false);
  // Ends the wait for the next tick when this process ends: a descriptor of
  // pidfd_open(), or -1. It must outlive run().
  void wake_by(int process) { wake_by_ = process; }
  // Samples until all processes have ended, the duration is over, or `go_on`,
  // called before every tick, returns false.
  Result<> run(const std::function<bool()>& go_on);

  // How many were written so far; may be called from any thread.
  std::uint64_t samples() const { return samples_; }
  // Why Python frames of some process could not be read; empty if they could.
  const std::string& trouble() const { return trouble_; }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void tick(Time now, std::chrono::nanoseconds passed);
  void look_for_children(Time now);
  void look_for_claims();
  SampledProcess* claimant(const AgentClaim& claim);
  void end(const SampledProcess& process);
  void sleep_until(Time time) const;
  void note_process(const SampledProcess& process);
  void inherit_phases();
  void note_engine(const SampledProcess& process);
  bool wanted(std::uint32_t phase);
  Result<> save();

  const SamplingOptions options_;
  const Context context_;
  ProfileLogWriter& log_;
  ProfileBuilder profile_;
  PythonLocator locator_;
  NativeModules modules_;
  SharedProcessor processor_;
  std::map<pid_t, std::unique_ptr<SampledProcess>> processes_;
  struct Parent {
    pid_t pid = 0;
    pid_t thread = 0;  // that started the child
  };
  std::map<pid_t, Parent> parents_;
  // Claims whose process is not known yet.
  std::vector<AgentClaim> claims_;
  bool follows_ = false;                       // in the last tick, see kFollow
  std::map<std::uint32_t, Time> claim_times_;  // by slot
  std::map<std::uint32_t, pid_t> claimed_by_;
  std::map<pid_t, std::uint64_t> sampled_ns_;  // of processes that are alive
  int wake_by_ = -1;
  std::uint64_t own_namespace_ = 0;
  std::map<std::uint32_t, bool> wanted_phases_;
  std::vector<ProfileSample> taken_;  // in this tick
  std::string trouble_;
  std::string python_;  // the version first seen
  bool engine_noted_ = false;
  std::uint64_t last_time_ = 0;
  SampleCounts ended_;  // of processes that have ended
  Time start_ = {};
  Time next_children_ = {};
  Time next_flush_ = {};
  std::atomic<std::uint64_t> samples_ = 0;
  std::uint64_t filtered_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t torn_ = 0;
  std::uint64_t cut_ = 0;
  std::uint64_t unreadable_ = 0;
};

}  // namespace postflight
