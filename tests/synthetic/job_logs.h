#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "synthetic/cluster/snapshot.h"

namespace postflight::synthetic {

// Whose words a log is in.
enum class LogStyle : std::uint8_t {
  kNamedGroups,  // PyTorch 2.5 to 2.11: "[PG ID 2 PG GUID 5(mesh_tp) Rank 1]"
  kNumbered,     // 2.3 and 2.4: "[PG 5 Rank 1]"
  kPlain,        // 1.13 to 2.1: "[Rank 1]", without a status
  kDetail,       // TORCH_DISTRIBUTED_DEBUG=DETAIL compares calls beforehand
  kGloo,         // the exceptions of its transport
};
constexpr std::size_t kLogStyles = 5;
std::string_view log_style_name(LogStyle style);

// Who started the processes, and so what is before each line, and what else is
// said at the end.
enum class Launcher : std::uint8_t {
  kTorchrun,    // its box at the end; "[default3]:" if it tees
  kSlurm,       // "3: ", and what srun says of tasks
  kMpirun,      // "[1,3]<stderr>:"
  kKubernetes,  // a time before each line, nothing at the end
};
constexpr std::size_t kLaunchers = 4;

struct LogOptions {
  LogStyle style = LogStyle::kNamedGroups;
  Launcher launcher = Launcher::kTorchrun;
  int ranks_per_node = 8;
  bool one_file = false;    // of all ranks, interleaved
  bool tells_size = false;  // of the groups, when they are made
  bool desync = false;      // TORCH_NCCL_DESYNC_DEBUG
  bool reasons = true;      // the dead say what they died of
  bool chatter = false;     // other threads of each rank write now and then
  bool attempt = false;     // an earlier attempt is in the same files
  bool colours = false;
  bool cuts = false;              // long lines are cut, some at the worst place
  bool noise = false;             // NCCL's and other warnings that mean nothing
  std::int64_t dump_wait_ms = 0;  // between a time-out and the abort
  std::int64_t monitor_ms = 100;  // until the launcher ends a node
  std::int64_t spread_ms = -1;    // and the other nodes; -1: never
  std::int64_t skew_ms = 0;       // of the nodes' clocks
  std::uint64_t seed = 1;
};
LogOptions draw_log_options(std::size_t index, bool gloo);

struct JobLogs {
  std::map<std::string, std::string> files;  // by name
  // What is right to say of them.
  Truth truth;
  // Whether they say who is at fault: what it died of, or of each rank what it
  // called, or that the rank at fault went on while all others had given up.
  bool tells = false;
};

// The logs that the job would leave: what it prints before it hangs, what its
// watchdogs say when they give up, and what its launcher makes of that.
JobLogs job_logs(const cluster::Snapshot& job, const LogOptions& options);

}  // namespace postflight::synthetic
