#pragma once

#include "base/limits.h"
#include "joblog/line.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace postflight {

// One process in torchrun's list of failures.
struct WorkerFailure {
  LogOrigin origin;            // with the rank, host and time in the list
  std::int64_t exit_code = 0;  // -9 for signal 9
  std::int64_t process = 0;
  std::string reason;        // "Signal 9 (SIGKILL) received by PID 17", or none
  bool first_cause = false;  // "first observed failure"
};

// Reads the list that torchrun prints after ChildFailedError:
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

  // The failure that this line completes, if it does.
  std::optional<WorkerFailure> take(const LogLine& line,
                                    const LogOrigin& origin);
  // The rank of the failure that a process is listing.
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
