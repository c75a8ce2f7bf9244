#pragma once

#include "flight/model/id.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace postflight {

// What the name of a log says about the process that wrote it.
struct LogName {
  std::optional<Rank> rank;
  std::optional<Rank> local_rank;  // torchrun's folder: attempt_0/3/stderr.log
  std::string host;
};

// Reads the names of a job's logs. Unlike in the name of a dump, a number may
// not be a rank: it is one after "rank", or if there are several files, all
// numbers differ, and all are small.
std::vector<LogName> read_log_names(std::span<const std::string> files);

}  // namespace postflight
