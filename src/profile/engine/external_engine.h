#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "profile/engine/engine.h"
#include "profile/engine/process_state.h"
#include "profile/engine/stack_namer.h"
#include "profile/engine/thread_watch.h"
#include "profile/python/stack.h"

namespace postflight {

// Reads the stacks of a process's threads from outside, one sample of each
// thread that the mode asks for per call. The process is never stopped.
class ExternalEngine final : public Engine {
 public:
  static constexpr std::string_view kTitle = "external, reads without stopping";

  // `process` must outlive it, and its interpreter must not change meanwhile.
  explicit ExternalEngine(ProcessState& process);

  void sample(std::vector<ProfileSample>& samples) override;
  void threads_refreshed() override;
  std::string_view title() const override { return kTitle; }

 private:
  struct Thread {
    explicit Thread(pid_t pid, pid_t tid) : watch(pid, tid) {}
    ThreadWatch watch;
    std::uint64_t state = 0;  // address of its PyThreadState; 0: none
    std::unique_ptr<PythonStackReader> reader = nullptr;
    std::unique_ptr<StackNamer> namer = nullptr;
  };

  void sample_thread(pid_t tid, Thread& thread,
                     std::vector<ProfileSample>& samples);
  const RawStack& read_stack(Thread& thread, ThreadActivity activity,
                             std::optional<std::uint64_t> turns);
  bool stands_still(const Thread& thread, ThreadActivity activity);

  ProcessState& process_;
  std::map<pid_t, Thread> threads_;
  int moves_ = 0;  // between processors, in this call of sample()
};

}  // namespace postflight
