#pragma once

#include "flight/model/id.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace postflight {

// An operation as a watchdog or a wrapper names it. Views point into the line.
struct LoggedOperation {
  std::int64_t sequence = 0;
  std::string_view type;  // "ALLREDUCE", "_ALLGATHER_BASE"
  // Elements; -1 if the line does not have them.
  std::int64_t inputs = -1;
  std::int64_t outputs = -1;
  std::string_view dtype;  // "Float"; empty if the line does not have it
  std::int64_t timeout_ms = 0;
};

// What one line says about how far a process came in a process group.
struct ProgressLine {
  // "[PG ID 2 PG GUID 5(mesh_tp) Rank 1]": name 5, description mesh_tp. Older
  // ones have a name only, the oldest neither: "[Rank 1]".
  bool named = false;
  std::string_view group;
  std::string_view description;
  std::optional<Rank> place;  // the rank in the group

  std::optional<LoggedOperation> timed_out;
  std::optional<std::int64_t> failed;  // the number at which it gave up
  std::optional<std::int64_t> enqueued;
  std::optional<std::int64_t> started;
  std::optional<std::int64_t> completed;
  std::optional<std::int64_t> members;  // how many the group has
  std::optional<Rank> rank;             // in the job, where the line has it
};

// The messages of ProcessGroupNCCL's watchdog and heartbeat monitor, of
// PyTorch 1.13 to 2.11, and of groups of its shape for other devices.
std::optional<ProgressLine> read_progress_line(std::string_view text);

// What several ranks called under one number, by
// TORCH_DISTRIBUTED_DEBUG=DETAIL.
struct LoggedCall {
  Rank place;  // in the group
  LoggedOperation operation;
};
std::vector<LoggedCall> read_fingerprints(std::string_view text);

// What a line says of ranks of its writer's group, which it does not name.
// Ranks are those within the group.
struct LoggedClaim {
  enum class Kind : std::uint8_t {
    kBarrier,     // they did not come to a monitored barrier
    kReached,     // the writer did, but rank 0 did not answer
    kDesync,      // they did not join an operation, says a desync report
    kUnfinished,  // they joined it and did not finish it
    kReporter,    // the writer of such a report, and what timed out
    kSnapshot,    // their state, in such a report
  };
  Kind kind = Kind::kBarrier;
  std::vector<Rank> places;
  std::optional<std::int64_t> sequence;  // of what they did not join
};
std::optional<LoggedClaim> read_claim(std::string_view text);

// The size of the job, where a line has it: "nranks 8", "MEMBER: 4/8".
std::optional<std::int64_t> read_world_size(std::string_view text);

}  // namespace postflight
