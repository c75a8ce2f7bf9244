#pragma once

#include "base/error.h"
#include "base/finding.h"
#include "base/limits.h"
#include "joblog/event.h"
#include "joblog/host_map.h"
#include "joblog/progress.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace postflight {

// What a job's logs say about its end.
struct JobLog {
  // Sorted by time where lines have one, else by file and line. One is marked
  // as the earliest, unless logs without times make that uncertain. The clocks
  // of different hosts are assumed to agree.
  std::vector<LogEvent> events;
  std::vector<Finding> findings;  // damaged files, events beyond the limits
  std::uint64_t lines = 0;        // in all files
  // How far ranks came in their groups, those whose rank is known; of each
  // rank and group once.
  std::vector<LogProgress> progress;
  std::vector<LogClaim> claims;
  std::vector<Rank> speakers;  // the ranks that lines or files are of, sorted
  // When each of them wrote its last line, where a time tells.
  std::map<Rank, LogTime> heard;
  std::optional<std::int64_t> world_size;  // where a line tells it
};

struct JobLogOptions {
  // Maps torchrun's local ranks to ranks; may be null.
  const HostMap* hosts = nullptr;
  Limits limits = {};
};

// Reads logs, plain or compressed, line by line. Any bytes are accepted. Fails
// if a file cannot be opened; a damaged file is read up to the damage.
Result<JobLog> read_job_logs(std::span<const std::string> files,
                             const JobLogOptions& options = {});

}  // namespace postflight
