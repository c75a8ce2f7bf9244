#pragma once

#include "flight/model/id.h"
#include "joblog/line.h"
#include "joblog/time.h"

#include <cstdint>
#include <optional>
#include <string>

namespace postflight {

// Where in a log something was said, and by whom.
struct LogOrigin {
  std::optional<Rank> rank;
  RankSource rank_source = RankSource::kNone;
  std::optional<Rank> local_rank;
  std::optional<Rank> task;  // Slurm's
  std::string host;
  std::optional<LogTime> time;
  // The same, or else that of the last line before that had one.
  std::optional<LogTime> order;
  std::uint64_t line = 0;
};

}  // namespace postflight
