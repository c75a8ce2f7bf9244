#pragma once

#include "flight/model/id.h"
#include "joblog/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

enum class LogEventKind : std::uint8_t {
  kCollectiveTimeout,  // the watchdog timed out an operation
  kWatchdog,           // its other messages: dumping, aborting, stuck
  kGlooTimeout,        // a monitored barrier, a send or receive over TCP
  kTraceback,          // any other Python exception
  kNcclWarning,
  kCudaError,
  kXid,  // the driver's report of a GPU or switch fault
  kGpuOutOfMemory,
  kHostOutOfMemory,  // a process killed by the kernel or Slurm
  kCrash,            // segmentation fault and the like
  kKilled,           // by a signal from outside
  kWorkerFailed,     // a launcher's report of a failed process
  kCancelled,        // by Slurm: time limit, preemption, node failure, scancel
};
constexpr std::size_t kLogEventKinds = 13;

// A stable identifier in snake_case, for programs.
constexpr std::string_view log_event_kind_name(LogEventKind kind) {
  switch (kind) {
    case LogEventKind::kCollectiveTimeout:
      return "collective_timeout";
    case LogEventKind::kWatchdog:
      return "watchdog";
    case LogEventKind::kGlooTimeout:
      return "gloo_timeout";
    case LogEventKind::kTraceback:
      return "traceback";
    case LogEventKind::kNcclWarning:
      return "nccl_warning";
    case LogEventKind::kCudaError:
      return "cuda_error";
    case LogEventKind::kXid:
      return "xid";
    case LogEventKind::kGpuOutOfMemory:
      return "gpu_out_of_memory";
    case LogEventKind::kHostOutOfMemory:
      return "host_out_of_memory";
    case LogEventKind::kCrash:
      return "crash";
    case LogEventKind::kKilled:
      return "killed";
    case LogEventKind::kWorkerFailed:
      return "worker_failed";
    case LogEventKind::kCancelled:
      return "cancelled";
  }
  return "";
}

// Something in a job's log that concerns its end. Lines that differ only in
// rank, process or time are one event. Texts are bytes of a file: escape them
// before printing.
struct LogEvent {
  LogEventKind kind = LogEventKind::kTraceback;
  // Of the first line.
  std::optional<Rank> rank;
  std::optional<Rank> local_rank;  // its index on its host
  std::optional<Rank> task;        // Slurm's; may be a node
  std::string host;
  std::optional<LogTime> time;
  // Of its last line, or of the line before that which has a time.
  std::optional<LogTime> last;
  std::string file;
  std::uint64_t line = 0;

  std::string message;  // one line, truncated
  std::string frame;    // "train.py:212" of a traceback: the innermost frame
                        // that is not a library's, else the innermost
  // A sequence number, Xid, signal or exit code; a signal's exit code is
  // negative.
  std::optional<std::int64_t> number;

  std::uint64_t count = 1;   // of lines
  std::vector<Rank> ranks;   // all ranks known to report it, sorted
  bool first_cause = false;  // according to torchrun
  bool earliest = false;     // of all events, where that is known
  // Torchrun has started all processes again since. Counted from 0 in each log.
  std::uint32_t attempt = 0;
  bool of_earlier_attempt = false;
};

}  // namespace postflight
