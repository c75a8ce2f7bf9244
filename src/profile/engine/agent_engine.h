#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "profile/engine/agent_ring.h"
#include "profile/engine/engine.h"
#include "profile/engine/process_state.h"
#include "profile/engine/stack_namer.h"
#include "profile/native/unwinder.h"
#include "profile/python/stack.h"

namespace postflight {

// Names the samples that the agent takes inside the process and passes through
// its ring.
class AgentEngine final : public Engine {
 public:
  // Both must outlive it, and the interpreter of `process` must not change
  // meanwhile. `clocked`: the agent is driven by a thread of its own instead of
  // perf events.
  AgentEngine(ProcessState& process, AgentRing& ring, bool clocked)
      : process_(process), ring_(ring), clocked_(clocked) {}

  void sample(std::vector<ProfileSample>& samples) override;
  void threads_refreshed() override;
  std::string_view title() const override {
    return clocked_ ? "in-process, clock thread" : "in-process, perf cpu-clock";
  }

 private:
  void take(const AgentSample& seen, std::vector<ProfileSample>& samples);

  ProcessState& process_;
  AgentRing& ring_;
  const bool clocked_;
  std::map<pid_t, StackNamer> namers_;
  std::unique_ptr<NativeUnwinder> unwinder_;
  RawStack stack_;  // of the sample being taken
};

}  // namespace postflight
