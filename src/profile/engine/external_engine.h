#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "profile/engine/engine.h"
#include "profile/engine/native_reader.h"
#include "profile/engine/process_state.h"
#include "profile/engine/stack_namer.h"
#include "profile/engine/thread_watch.h"
#include "profile/python/stack.h"

namespace postflight {

// Reads the stacks of a process's threads from outside, one sample of each
// thread that the mode asks for per call. The process is not stopped, except
// for native frames of threads that run.
class ExternalEngine final : public Engine {
 public:
  static constexpr std::string_view kTitle = "external, reads without stopping";

  // `process` must outlive it, and its interpreter must not change meanwhile.
  // `accounted`: up to which CPU time threads have been sampled before.
  explicit ExternalEngine(ProcessState& process,
                          const std::map<pid_t, std::uint64_t>& accounted = {});

  void sample(std::vector<ProfileSample>& samples) override;
  void threads_refreshed() override;
  void python_ended() override;
  bool needs_ticks() const override { return true; }
  std::map<pid_t, std::uint64_t> accounted() const override;
  std::string_view title() const override;

  // For another engine, which has seen less of a thread than it ran: adds a
  // sample of it, if it is there, with this weight.
  bool sample_for(pid_t tid, std::uint64_t weight_ns,
                  std::vector<ProfileSample>& samples);
  // The CPU time of a thread, see ThreadWatch::run_ns().
  std::optional<std::uint64_t> run_ns(pid_t tid) const;

 private:
  struct Thread {
    explicit Thread(pid_t pid, pid_t tid) : watch(pid, tid) {}
    ThreadWatch watch;
    // Its Python states, one for each interpreter that it has run, the newest
    // interpreter first. It runs the first that has frames.
    std::vector<std::uint64_t> states = {};
    std::vector<std::unique_ptr<PythonStackReader>> readers = {};
    std::unique_ptr<StackNamer> namer = nullptr;
    std::uint64_t accounted_ns = 0;  // of its CPU time, by samples
    std::uint64_t seen_ns = 0;       // its CPU time when last read
    std::uint64_t system_ns = 0;     // in the kernel, when last sampled
    int idle = 0;                    // ticks since it last ran
    std::optional<std::uint64_t> turns = {};  // when last_stack was read
    std::uint32_t last_stack = 0;
    std::vector<std::uint64_t> codes = {};  // of it, sorted; empty: not known
    std::vector<ProfileSample> unweighed = {};
  };

  void sample_wall(pid_t tid, Thread& thread,
                   std::vector<ProfileSample>& samples);
  void sample_cpu(std::vector<ProfileSample>& samples);
  void account(pid_t tid, Thread& thread, std::vector<ProfileSample>& samples);
  ProfileSample taken(pid_t tid, Thread& thread, ThreadActivity activity,
                      std::optional<std::uint64_t> turns);
  static void weigh(Thread& thread, std::uint64_t weight_ns,
                    std::vector<ProfileSample>& taken,
                    std::vector<ProfileSample>& samples);
  const RawStack& read_stack(Thread& thread, ThreadActivity activity,
                             std::optional<std::uint64_t> turns);
  void check_codes(const RawStack& stack);
  void take_native(pid_t tid, Thread& thread, ThreadActivity activity,
                   std::optional<std::uint64_t> turns, ProfileSample& sample);
  bool stands_still(const Thread& thread, ThreadActivity activity);
  PythonStackReader& reader(const Thread& thread) const;

  ProcessState& process_;
  std::map<pid_t, Thread> threads_;
  std::uint64_t process_ns_ = 0;      // its CPU time at the last tick
  std::uint64_t unexplained_ns_ = 0;  // of that, by threads looked at
  int ticks_ = 0;                     // since all threads were looked at
  bool first_ = true;
  std::vector<std::uint64_t> code_addresses_;
  std::unique_ptr<NativeReader> native_;  // null: no native frames
  int moves_ = 0;  // between processors, in this call of sample()
};

}  // namespace postflight
