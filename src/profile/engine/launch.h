#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"

namespace postflight {

// A program that was launched to be profiled.
class Launch {
 public:
  // Looks up the program in PATH, as a shell does. `environment` (NAME=value)
  // is added to that of this process.
  static Result<Launch> start(const std::vector<std::string>& command,
                              const std::vector<std::string>& environment);

  // Whether it exists and is executable, for callers who have something to lose
  // before they start it.
  static Result<> check(const std::string& program);

  Launch(Launch&& other) noexcept;
  Launch& operator=(Launch&&) = delete;
  // Waits for the program.
  ~Launch();

  pid_t pid() const { return pid_; }
  // The status of wait(2) once the program has ended; does not wait.
  std::optional<int> poll();
  int wait();

 private:
  explicit Launch(pid_t pid) : pid_(pid) {}
  void look(int options);

  pid_t pid_;
  std::optional<int> status_;
};

// While one exists, SIGUSR1 and SIGUSR2 that others send to this process, which
// they would end, are passed on to the launched program. At most one at a time.
class SignalForwarding {
 public:
  explicit SignalForwarding(pid_t to);
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;
  ~SignalForwarding();

 private:
  std::array<struct sigaction, 2> before_ = {};
};

// While one exists, a file that grows beyond RLIMIT_FSIZE is an error in this
// process instead of its end (SIGXFSZ). Launched programs get the signal as
// before.
class FileSizeGuard {
 public:
  FileSizeGuard();
  FileSizeGuard(const FileSizeGuard&) = delete;
  FileSizeGuard& operator=(const FileSizeGuard&) = delete;
  ~FileSizeGuard();

 private:
  struct sigaction before_ = {};
};

// "exit status 3", "signal 9 (Killed)"; empty if it succeeded.
std::string describe_failure(int status);

}  // namespace postflight
