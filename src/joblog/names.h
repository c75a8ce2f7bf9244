#pragma once

#include "flight/model/id.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace postflight {

// What the name of a log tells about the process that wrote it.
struct LogName {
  std::optional<Rank> rank;
  std::optional<Rank> local_rank;  // torchrun's folder: attempt_0/3/stderr.log
  std::string host;
};

// Reads the names of a job's logs. Unlike the name of a dump, that of a log
// may have a number that is no rank: a number is one behind "rank", or where
// there are several files, each has another, and all are small.
std::vector<LogName> read_log_names(std::span<const std::string> files);

}  // namespace postflight
