#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "profile/engine/agent_ring.h"
#include "profile/engine/handler_times.h"
#include "profile/engine/shared_processor.h"
#include "profile/engine/stack_namer.h"
#include "profile/engine/thread_watch.h"
#include "profile/log/profile.h"
#include "profile/native/unwinder.h"
#include "profile/phase/table.h"
#include "profile/process/memory.h"
#include "profile/python/code_reader.h"
#include "profile/python/locator.h"
#include "profile/python/stack.h"
#include "profile/python/threads.h"

namespace postflight {

enum class ProfileMode : std::uint8_t {
  kCpu,   // threads that run
  kWall,  // threads that wait, too
};

struct SamplingOptions {
  ProfileMode mode = ProfileMode::kCpu;
  std::size_t most_frames = 500;
  std::int32_t rank = -1;
  // Where processes say which phases they are in; empty: nowhere.
  std::filesystem::path phases = {};
  // Programs were started with the agent, whose rings lie there, too. Those of
  // it that cannot be sampled so are looked at from outside.
  bool agent = false;
  std::chrono::nanoseconds interval{0};  // the agent's
  bool native = false;  // the agent's samples: native frames, too
};

// One process that is looked at from outside. It is never stopped.
class SampledProcess {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `locator`, `processor` (of the thread that samples) and `profile` have to
  // outlive it.
  SampledProcess(pid_t pid, const SamplingOptions& options,
                 PythonLocator& locator, SharedProcessor& processor,
                 ProfileBuilder& profile);
  SampledProcess(const SampledProcess&) = delete;
  SampledProcess& operator=(const SampledProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Appends a sample of each thread that the mode asks for, without time and
  // weight, or those that the agent took since, with both; times are those of
  // the steady clock. False when the process has gone.
  bool sample(Time now, std::vector<ProfileSample>& samples);
  // The phase of a thread, or with `tid` 0 of any that is in one; what was
  // inherited if it has none of its own.
  std::uint32_t phase_of(pid_t tid);
  // Who has no phases of its own is in those of the process that started it.
  void inherit_phase(std::uint32_t phase) { inherited_phase_ = phase; }
  // Whether the agent inside takes the samples, and if not, why not; empty
  // until that is decided.
  bool agent_runs() const { return agent_runs_; }
  const std::string& agent_trouble() const { return agent_trouble_; }
  // Whether its samples need ticks of ours, for good: not only until its agent
  // is there.
  bool from_outside() const {
    return !options_.agent || (!agent_runs_ && !agent_trouble_.empty());
  }
  const AgentRing* ring() const { return ring_ ? &*ring_ : nullptr; }
  const HandlerTimes& handler_times() const { return handler_times_; }
  // What kept us from reading Python frames: a version that is not known.
  const std::string& trouble() const { return trouble_; }
  const std::optional<PythonRuntime>& python() const { return python_; }
  // How many stacks of running threads are only known to have looked the same
  // twice.
  std::uint64_t unproven() const { return unproven_; }

 private:
  struct Thread {
    explicit Thread(pid_t pid, pid_t tid) : watch(pid, tid) {}
    ThreadWatch watch;
    std::uint32_t number = 0;  // in the profile
    std::uint32_t alone = 0;   // the stack of a thread that runs no Python
    std::uint64_t state = 0;   // of Python; 0: none
    std::unique_ptr<PythonStackReader> reader = nullptr;
    std::unique_ptr<StackNamer> namer = nullptr;
  };

  void look_for_python(Time now);
  void refresh_threads(Time now);
  bool threads_changed();
  void forget_python();
  void open_phases();
  std::map<pid_t, Thread>::iterator add_thread(pid_t tid);
  void look_for_agent();
  void take(const AgentSample& seen, std::vector<ProfileSample>& samples);
  std::uint32_t phase_number(std::span<const std::uint32_t> inside);
  void sample_thread(pid_t tid, Thread& thread,
                     std::vector<ProfileSample>& samples);
  const RawStack& read_stack(Thread& thread, ThreadActivity activity,
                             std::optional<std::uint64_t> turns);
  bool stands_still(const Thread& thread, ThreadActivity activity);

  const pid_t pid_;
  const SamplingOptions options_;
  PythonLocator& locator_;
  SharedProcessor& processor_;
  ProfileBuilder& profile_;
  ProcessMemory memory_;
  std::optional<PythonRuntime> python_;
  std::unique_ptr<CodeReader> codes_;
  std::string trouble_;
  std::string name_;
  std::map<pid_t, Thread> threads_;
  std::optional<PhaseTableReader> phases_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> known_phases_;
  std::uint32_t inherited_phase_ = 0;
  std::optional<AgentRing> ring_;
  std::uint32_t generation_ = 0;
  bool agent_runs_ = false;
  std::string agent_trouble_;
  RawStack agent_stack_;
  std::unique_ptr<NativeUnwinder> unwinder_;
  std::map<pid_t, std::unique_ptr<StackNamer>> agent_namers_;
  HandlerTimes handler_times_;
  std::uint64_t unproven_ = 0;
  int moves_ = 0;                   // between processors, for this sample
  std::uint64_t first_thread_ = 0;  // Python's newest, to see new ones
  Time born_ = {};
  Time next_look_ = {};
  Time next_refresh_ = {};
  Time next_phases_ = {};
};

}  // namespace postflight
