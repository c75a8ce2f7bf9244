#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/context.h"
#include "profile/engine/agent_ring.h"
#include "profile/engine/engine.h"
#include "profile/engine/process_state.h"

namespace postflight {

// One process and the engine that samples it: the agent's as soon and as long
// as there is an agent that can, else the external one.
class SampledProcess {
 public:
  using Time = ProcessState::Time;

  // `locator`, `processor` (of the thread that samples) and `profile` must
  // outlive it.
  SampledProcess(pid_t pid, const SamplingOptions& options,
                 const Context& context, PythonLocator& locator,
                 SharedProcessor& processor, ProfileBuilder& profile);
  SampledProcess(const SampledProcess&) = delete;
  SampledProcess& operator=(const SampledProcess&) = delete;

  // Appends what the engine has, see Engine::sample(). False when the process
  // has ended.
  bool sample(Time now, std::vector<ProfileSample>& samples);

  std::uint32_t phase_of(pid_t tid) { return state_.phase_of(tid); }
  void inherit_phase(std::uint32_t phase) { state_.inherit_phase(phase); }

  const std::optional<PythonRuntime>& python() const { return state_.python(); }
  const std::string& trouble() const { return state_.trouble(); }
  SampleCounts counts() const;

  const Engine& engine() const { return *engine_; }
  // Whether the engine will stay, as long as the process runs this program:
  // the external one is not just waiting for the agent.
  bool engine_decided() const {
    return agent_runs_ || !state_.options().agent || !agent_trouble_.empty();
  }
  // Whether it depends on the loop to tick in time.
  bool needs_ticks() const { return engine_decided() && !agent_runs_; }
  // Why the agent does not run, or not by perf events; empty if it does.
  const std::string& agent_trouble() const { return agent_trouble_; }

 private:
  void look_for_agent();
  void use_external_engine();

  ProcessState state_;
  std::optional<AgentRing> ring_;
  std::uint32_t generation_ = 0;
  std::unique_ptr<Engine> engine_;
  bool agent_runs_ = false;
  std::string agent_trouble_;
};

}  // namespace postflight
