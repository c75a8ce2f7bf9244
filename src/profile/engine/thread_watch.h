#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/descriptor.h"
#include "profile/engine/sample_counts.h"

namespace postflight {

enum class ThreadActivity : std::uint8_t {
  kRunning,  // or ready to
  kWaiting,
  kGone,
};

// Tells what a thread does, without disturbing it.
class ThreadWatch {
 public:
  ThreadWatch(pid_t pid, pid_t tid);

  ThreadActivity activity() const;
  // The CPU time that the thread has used; nothing if the kernel does not count
  // it by the nanosecond, or the thread is gone. It may be a few milliseconds
  // late.
  std::optional<std::uint64_t> run_ns() const;
  // How much of its CPU time was in the kernel, in the kernel's estimate.
  std::optional<std::uint64_t> system_ns() const;
  // How often the thread was scheduled; nothing if the kernel does not count
  // that. A thread that was not running at some moment after one call, and
  // whose count is the same in a later call, has not run in between.
  std::optional<std::uint64_t> turns() const;
  // The processor that it runs on or ran on last. Nothing if its scheduling
  // class does not share a processor with ordinary threads like ours.
  std::optional<int> processor() const;

 private:
  // The fields of its stat file from the third on.
  std::optional<std::string_view> stat_fields(std::span<char> buffer) const;

  // /proc/PID/task/TID/syscall, which is the cheapest to read; if the kernel
  // does not have it, /proc/PID/task/TID/stat.
  // All are opened when first needed.
  mutable Descriptor file_;
  mutable bool is_stat_ = false;
  std::string folder_;
  mutable Descriptor turns_;
  mutable Descriptor stat_;
};

// The CPU time that a process has used, of all its threads, also of those that
// have ended; nothing if it is gone.
std::optional<std::uint64_t> process_cpu_ns(pid_t pid);
// The same, in user code and in the kernel.
std::optional<CpuTime> process_cpu_time(pid_t pid);

// Files of /proc, without the newline; empty if the process has ended.
std::string command_line(pid_t pid);
std::string thread_name(pid_t pid, pid_t tid);

std::vector<pid_t> process_threads(pid_t pid);
struct ProcessChild {
  pid_t pid = 0;
  pid_t started_by = 0;  // the thread
};
std::vector<ProcessChild> process_children(pid_t pid);

}  // namespace postflight
