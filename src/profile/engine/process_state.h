#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/context.h"
#include "profile/engine/engine.h"
#include "profile/engine/sample_counts.h"
#include "profile/engine/shared_processor.h"
#include "profile/log/profile.h"
#include "profile/native/unwinder.h"
#include "profile/phase/table.h"
#include "profile/process/memory.h"
#include "profile/python/code_reader.h"
#include "profile/python/locator.h"

namespace postflight {

// What is known of a process that is being sampled, by whichever engine: its
// interpreter, its threads, and the phases they are in.
class ProcessState {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Thread {
    std::uint32_t number = 0;  // in the profile
    std::uint32_t alone = 0;   // the stack of a thread that runs no Python
    bool main = false;         // the first of its process
  };

  // What refresh() found changed.
  struct Changes {
    bool threads = false;  // the list was read again
    bool python_ended = false;
  };

  // `locator`, `modules`, `processor` (of the thread that samples) and
  // `profile` must outlive it. `whole`: the process was started while it was
  // profiled, so all of its CPU time is part of the profile.
  ProcessState(pid_t pid, bool whole, const SamplingOptions& options,
               const Context& context, PythonLocator& locator,
               NativeModules& modules, SharedProcessor& processor,
               ProfileBuilder& profile);
  ProcessState(const ProcessState&) = delete;
  ProcessState& operator=(const ProcessState&) = delete;

  // Looks for an interpreter, threads and phases, as often as each is worth.
  Changes refresh(Time now);
  // The process has become another program, or its interpreter has ended.
  void forget_python();
  // An agent runs in it, with this phase table: an interpreter that is about to
  // start is found, too, and not looked at from outside again.
  void use_agent(const std::byte* phases);
  // It was forked from that process: its interpreter, at the same addresses,
  // runs at once.
  void inherit(const ProcessState& parent);

  pid_t pid() const { return pid_; }
  bool whole() const { return whole_; }
  // The thread that the process itself, in a PID namespace of its own, calls
  // `tid`; 0 if it is not known.
  pid_t host_thread(pid_t tid);
  const std::string& command() const { return command_line_; }
  const SamplingOptions& options() const { return options_; }
  SharedProcessor& processor() const { return processor_; }
  NativeModules& modules() const { return modules_; }
  ProfileBuilder& profile() const { return profile_; }
  const Memory& memory() const { return memory_; }
  const std::optional<PythonRuntime>& python() const { return python_; }
  // Null without an interpreter.
  CodeReader* codes() const { return codes_.get(); }
  // Why Python frames cannot be read: an unknown version. Empty if they can.
  const std::string& trouble() const { return trouble_; }

  const std::map<pid_t, Thread>& threads() const { return threads_; }
  // A thread that may have started after the list was read, or ended.
  const Thread& thread(pid_t tid);

  // The number in the profile of the phase a thread is in; with `tid` 0, of
  // any thread that is in one. The inherited phase if it is in none. A phase of
  // a generator counts only if `runs` says that its code is on the stack.
  using Runs = std::function<bool(std::uint64_t code)>;
  std::uint32_t phase_of(pid_t tid, const Runs& runs = {});
  // Of phases as PhaseTableReader numbers them, the outermost first.
  std::uint32_t phase_number(std::span<const std::uint32_t> inside,
                             const Runs& runs = {});
  // A process outside phases of its own is in those of its parent.
  void inherit_phase(std::uint32_t phase) { inherited_phase_ = phase; }

  SampleCounts& counts() { return counts_; }
  const SampleCounts& counts() const { return counts_; }

 private:
  void look_for_python(Time now);
  bool first_thread_changed();
  Thread& add_thread(pid_t tid);
  void read_threads();
  void open_phases();

  const pid_t pid_;
  const bool whole_;
  const SamplingOptions options_;
  const Limits limits_;
  PythonLocator& locator_;
  NativeModules& modules_;
  SharedProcessor& processor_;
  ProfileBuilder& profile_;
  ProcessMemory memory_;
  std::optional<PythonRuntime> python_;
  std::unique_ptr<CodeReader> codes_;
  std::string trouble_;
  std::string command_line_;
  std::map<pid_t, Thread> threads_;
  std::optional<PhaseTableReader> phases_;
  // By the inherited phase and those inside it.
  std::map<std::vector<std::uint32_t>, std::uint32_t> known_phases_;
  std::map<std::uint32_t, SeenPhase> seen_phases_;
  std::uint32_t inherited_phase_ = 0;
  const std::byte* agent_phases_ = nullptr;  // null: no agent
  std::optional<bool> foreign_;              // in another PID namespace
  std::map<pid_t, pid_t> host_threads_;      // of threads there
  std::string first_name_;                   // of its parent's thread
  SampleCounts counts_;
  std::uint64_t first_thread_ = 0;  // Python's newest, to notice new ones
  Time born_ = {};
  Time next_look_ = {};
  Time next_refresh_ = {};
  Time next_first_ = {};
  Time next_phases_ = {};
};

}  // namespace postflight
