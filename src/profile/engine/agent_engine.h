#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "profile/engine/agent_ring.h"
#include "profile/engine/engine.h"
#include "profile/engine/external_engine.h"
#include "profile/engine/process_state.h"
#include "profile/engine/stack_namer.h"
#include "profile/native/unwinder.h"
#include "profile/python/stack.h"

namespace postflight {

// Names the samples that the agent takes inside the process and passes through
// its ring. CPU time that they leave out is sampled from outside: a thread gets
// no signals while it is in the kernel, or blocks them.
class AgentEngine final : public Engine {
 public:
  // Both must outlive it, and the interpreter of `process` must not change
  // meanwhile. `clocked`: the agent is driven by a thread of its own instead of
  // perf events. `accounted`: up to which CPU time threads have been sampled
  // before.
  AgentEngine(ProcessState& process, AgentRing& ring, bool clocked,
              const std::map<pid_t, std::uint64_t>& accounted);

  void sample(std::vector<ProfileSample>& samples) override;
  void threads_refreshed() override;
  void python_ended() override;
  bool needs_ticks() const override { return needs_ticks_; }
  std::map<pid_t, std::uint64_t> accounted() const override;
  std::string_view title() const override {
    return clocked_ ? "in-process, clock thread" : "in-process, perf cpu-clock";
  }

 private:
  struct Thread {
    std::uint64_t cpu_ns = 0;      // up to which it is accounted for
    std::uint64_t outside_ns = 0;  // of that, sampled from outside since the
                                   // agent's last sample
    bool had_frames = false;
    std::optional<StackNamer> namer = {};
    std::uint32_t last_stack = 0;
  };

  void take(const AgentSample& seen, std::vector<ProfileSample>& samples);
  std::uint32_t phase_of(const AgentSample& seen);
  void sample_the_rest(std::uint64_t used, std::vector<ProfileSample>& samples);
  // Its native frames with the Python frames of stack_ among them.
  std::uint32_t merged(const AgentSample& seen, CodeReader* codes);
  std::uint32_t stack_of(const AgentSample& seen,
                         const ProcessState::Thread& known, Thread& thread);

  ProcessState& process_;
  AgentRing& ring_;
  const bool clocked_;
  std::map<pid_t, Thread> threads_;
  std::unique_ptr<NativeUnwinder> unwinder_;
  std::unique_ptr<ExternalEngine> outside_;
  std::uint64_t accounted_ns_ = 0;  // by all samples
  std::uint64_t own_ns_ = 0;        // by the agent's own thread
  std::uint64_t looked_at_ns_ = 0;  // of the rest, when last looked into
  bool needs_ticks_ =
      false;  // the ring fills fast, or threads are in the kernel
  std::size_t stack_bytes_ = 0;
  RawStack stack_;  // of the sample being taken
};

}  // namespace postflight
