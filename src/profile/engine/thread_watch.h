#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/descriptor.h"

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
  // How often the thread was scheduled; nothing if the kernel does not count
  // that. A thread that was not running at some moment after one call, and
  // whose count is the same in a later call, has not run in between.
  std::optional<std::uint64_t> turns() const;
  // The processor that it runs on or ran on last. Nothing if its scheduling
  // class does not share a processor with ordinary threads like ours.
  std::optional<int> processor() const;

 private:
  // /proc/PID/task/TID/syscall, which is the cheapest to read; if the kernel
  // does not have it, /proc/PID/task/TID/stat.
  Descriptor file_;
  bool is_stat_ = false;
  // Opened when first needed.
  std::string folder_;
  mutable Descriptor turns_;
  mutable Descriptor stat_;
};

// Files of /proc, without the newline; empty if the process has ended.
std::string command_line(pid_t pid);
std::string thread_name(pid_t pid, pid_t tid);

std::vector<pid_t> process_threads(pid_t pid);
std::vector<pid_t> process_children(pid_t pid);

}  // namespace postflight
