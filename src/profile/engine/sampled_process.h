#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/context.h"
#include "profile/engine/agent_arena.h"
#include "profile/engine/agent_ring.h"
#include "profile/engine/engine.h"
#include "profile/engine/process_state.h"

namespace postflight {

// One process and the engine that samples it: the agent's as soon and as long
// as there is an agent that can, else the external one.
class SampledProcess {
 public:
  using Time = ProcessState::Time;

  // `locator`, `modules`, `processor` (of the thread that samples) and
  // `profile` must outlive it. `whole`: see ProcessState.
  SampledProcess(pid_t pid, bool whole, const SamplingOptions& options,
                 const Context& context, PythonLocator& locator,
                 NativeModules& modules, SharedProcessor& processor,
                 ProfileBuilder& profile);
  SampledProcess(const SampledProcess&) = delete;
  SampledProcess& operator=(const SampledProcess&) = delete;

  // The process has claimed a ring: it runs a new program, or was forked from
  // `parent`, which is null where that is not known.
  void use_ring(AgentRing ring, const AgentClaim& claim,
                const SampledProcess* parent);
  // Of the ring that it uses, if any.
  const std::optional<AgentClaim>& claim() const { return claim_; }

  // Appends what the engine has, see Engine::sample(). False when the process
  // has ended.
  bool sample(Time now, std::vector<ProfileSample>& samples);

  std::uint32_t phase_of(pid_t tid) { return state_.phase_of(tid); }
  void inherit_phase(std::uint32_t phase) { state_.inherit_phase(phase); }

  pid_t pid() const { return state_.pid(); }
  bool is_whole() const { return state_.whole(); }
  const std::optional<PythonRuntime>& python() const { return state_.python(); }
  const std::string& trouble() const { return state_.trouble(); }
  SampleCounts counts() const;
  // What it has used since the profile began, as far as that is known.
  CpuTime used() const;
  const std::string& command() const { return state_.command(); }

  const Engine& engine() const { return *engine_; }
  // Whether the engine will stay, as long as the process runs this program:
  // the external one is not just waiting for the agent.
  bool engine_decided() const {
    return agent_runs_ || state_.options().arena == nullptr ||
           !agent_trouble_.empty();
  }
  // Its interpreter is about to start: the agent waits for the layout of its
  // frames.
  bool is_starting(Time now) const;
  // Whether it depends on the loop to tick in time: samples are lost otherwise.
  bool loses_ticks() const { return engine_decided() && !agent_runs_; }
  bool needs_ticks() const { return starts_ || engine_->needs_ticks(); }
  // Why the agent does not run, or not by perf events; empty if it does.
  const std::string& agent_trouble() const { return agent_trouble_; }

 private:
  void look_after_agent(Time now);
  void use_external_engine();
  void look_at_clock(Time now);

  ProcessState state_;
  std::optional<AgentRing> ring_;
  std::optional<AgentClaim> claim_;
  std::unique_ptr<Engine> engine_;
  bool agent_runs_ = false;
  bool starts_ = false;  // the interpreter, which the agent waits for
  std::string agent_trouble_;
  std::uint64_t lost_ = 0;  // in rings used before
  std::optional<Time> ended_;
  std::vector<ProfileSample> rest_;  // of an engine that was replaced
  std::optional<CpuTime> at_first_;  // what it had used before
  CpuTime used_ = {};
  std::uint64_t used_ns_ = 0;  // by its clock, which is more precise
  Time next_look_ = {};
  Time next_clock_ = {};
  Time born_ = {};
};

}  // namespace postflight
