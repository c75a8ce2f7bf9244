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
  kCollectiveTimeout,  // the watchdog gave an operation up
  kWatchdog,           // what else it says: dumping, aborting, stuck itself
  kGlooTimeout,        // a monitored barrier, a send or receive over TCP
  kTraceback,          // a Python exception that is none of the others
  kNcclWarning,
  kCudaError,
  kXid,  // the driver's report of a fault in a GPU or switch
  kGpuOutOfMemory,
  kHostOutOfMemory,  // the kernel or Slurm killed a process for its memory
  kCrash,            // segmentation fault and the like
  kKilled,           // ended by a signal that it did not cause
  kWorkerFailed,     // what a launcher says of a process that ended badly
  kCancelled,        // by Slurm: time limit, preemption, node failure, a person
};
constexpr std::size_t kLogEventKinds = 13;

// A stable name_like_this, for programs.
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

// Something a job's log says about its end. Lines that differ in their rank,
// process or time only are one event. Texts are bytes of a file: whoever
// prints them escapes them.
struct LogEvent {
  LogEventKind kind = LogEventKind::kTraceback;
  // Those of the first line; the rank is unknown if nothing tells it.
  std::optional<Rank> rank;
  std::optional<Rank> local_rank;  // the place on its host
  std::optional<Rank> task;        // Slurm's, which may be a node
  std::string host;
  std::optional<LogTime> time;
  std::string file;
  std::uint64_t line = 0;

  std::string message;  // one line, cut
  std::string frame;    // "train.py:212" of a traceback: the innermost frame
                        // that is not a library's, else the innermost
  // A sequence number, Xid, signal or exit code; a signal's exit code is
  // negative.
  std::optional<std::int64_t> number;

  std::uint64_t count = 1;   // lines that say it
  std::vector<Rank> ranks;   // all that are known to say it, in rising order
  bool first_cause = false;  // torchrun calls it the first failure
  bool earliest = false;     // of all events, where that can be told
};

}  // namespace postflight
