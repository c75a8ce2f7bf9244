#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "profile/native/unwinder.h"
#include "profile/process/memory.h"

namespace postflight {

// Reads native stacks of a process from outside. Where a waiting thread is, the
// kernel says; one that runs is stopped by ptrace, for as long as its registers
// and its stack are copied. If the profiler ends meanwhile, the kernel lets the
// thread go on.
class NativeReader {
 public:
  // `memory` and `modules` must outlive it.
  NativeReader(pid_t pid, const Memory& memory, NativeModules& modules);
  NativeReader(const NativeReader&) = delete;
  NativeReader& operator=(const NativeReader&) = delete;
  ~NativeReader();

  // Nothing if the kernel does not say where it waits.
  std::optional<NativeStack> waiting(pid_t tid);
  // `while_stopped` may read more. Nothing, and no call, if the thread cannot
  // be stopped: it has another tracer, or does not come out of the kernel.
  std::optional<NativeStack> stopped(
      pid_t tid, const std::function<void()>& while_stopped);

  // Call it now and then: threads that did not stop in time go on.
  void let_go();

  // The process runs another program.
  void forget_program() { unwinder_.emplace(pid_, modules_); }

  NativeUnwinder& unwinder() { return *unwinder_; }

 private:
  // How a thread that was interrupted has stopped.
  enum class Stop : std::uint8_t { kNotYet, kStopped, kGone };

  Stop look(pid_t tid, int& signal) const;
  std::vector<std::byte> copy_stack(std::uint64_t bottom) const;
  NativeStack unwind(const RegisterValues& values,
                     const std::vector<std::byte>& stack);

  const pid_t pid_;
  const bool is_child_;  // of this process
  const Memory& memory_;
  NativeModules& modules_;
  std::optional<NativeUnwinder> unwinder_;
  std::size_t stack_bytes_;
  std::vector<pid_t> late_;  // threads that have not stopped yet
};

}  // namespace postflight
