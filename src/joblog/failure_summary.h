#pragma once

#include "base/limits.h"
#include "joblog/line.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace postflight {

// One process in torchrun's list of those that failed.
struct WorkerFailure {
  LogOrigin origin;  // with the rank, host and time that the list says
  std::int64_t exit_code = 0;  // minus the signal
  std::int64_t process = 0;
  std::string reason;        // "Signal 9 (SIGKILL) received by PID 17", or none
  bool first_cause = false;  // "first observed failure"
};

// Reads the list that torchrun prints behind ChildFailedError:
//
//   Root Cause (first observed failure):
//   [0]:
//     time      : 2023-08-01_01:06:47
//     host      : node1
//     rank      : 4 (local_rank: 4)
//     exitcode  : -9 (pid: 208585)
//     error_file: <N/A>
//     traceback : Signal 9 (SIGKILL) received by PID 208585
class FailureSummaryReader {
 public:
  explicit FailureSummaryReader(const Limits& limits) : limits_(limits) {}

  // The failure whose last line this is, if it is one.
  std::optional<WorkerFailure> take(const LogLine& line,
                                    const LogOrigin& origin);
  // Whom the lines of a process are about, inside a list.
  std::optional<Rank> rank(std::uint64_t process) const;

 private:
  struct Open {
    bool in_root_cause = false;
    bool in_failure = false;
    WorkerFailure failure;
  };

  std::optional<WorkerFailure> take_field(Open& open, std::string_view text,
                                          const LogOrigin& origin);

  const Limits& limits_;
  std::unordered_map<std::uint64_t, Open> open_;
};

}  // namespace postflight
