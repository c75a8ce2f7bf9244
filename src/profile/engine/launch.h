#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"

namespace postflight {

// A program that was started to be profiled.
class Launch {
 public:
  // Looks the program up in PATH, as a shell does. `environment` is added to
  // ours, each as NAME=value.
  static Result<Launch> start(const std::vector<std::string>& command,
                              const std::vector<std::string>& environment);

  // Whether it could be found and run, for those who have something to lose
  // before they start it.
  static Result<> check(const std::string& program);

  Launch(Launch&& other) noexcept;
  Launch& operator=(Launch&&) = delete;
  // Waits for the program.
  ~Launch();

  pid_t pid() const { return pid_; }
  // Asks without waiting; what wait(2) says of it, once it has ended.
  std::optional<int> poll();
  int wait();

 private:
  explicit Launch(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  std::optional<int> status_;
};

// "exit status 3", "signal 9 (Killed)"; empty if all went well.
std::string describe_failure(int status);

}  // namespace postflight
