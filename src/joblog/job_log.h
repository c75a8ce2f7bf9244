#pragma once

#include "base/error.h"
#include "base/finding.h"
#include "base/limits.h"
#include "joblog/event.h"
#include "joblog/host_map.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace postflight {

// What a job's logs say about its end.
struct JobLog {
  // By time where lines have one, else by file and line. One is marked as the
  // earliest unless logs without times leave that open. Hosts' clocks are
  // trusted.
  std::vector<LogEvent> events;
  std::vector<Finding> findings;  // damaged files, events beyond the limits
  std::uint64_t lines = 0;        // read in all
};

struct JobLogOptions {
  // Where torchrun's local ranks are looked up; may be null.
  const HostMap* hosts = nullptr;
  Limits limits = {};
};

// Reads logs, plain or compressed, line by line. Any bytes are a log. An error
// if a file can't be opened; of one that is damaged, what lies before.
Result<JobLog> read_job_logs(std::span<const std::string> files,
                             const JobLogOptions& options = {});

}  // namespace postflight
