#pragma once

#include "flight/model/id.h"
#include "joblog/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace postflight {

// How the rank of a line is known.
enum class RankSource : std::uint8_t {
  kNone,
  kGroup,  // "[Rank 3]" in a message: the rank in some process group
  kLabel,  // a launcher's label; srun's may be a node's number
  kLine,   // from torch or mpirun
};

// A line of a job's log, split into the prefixes of launchers and loggers and
// the text. Its views point into the line that was read.
struct LogLine {
  // Without the prefixes, with its indentation.
  std::string_view text;
  std::optional<Rank> rank;
  RankSource rank_source = RankSource::kNone;
  std::optional<Rank> label;  // srun's label, even if `rank` is known otherwise
  std::optional<Rank> local_rank;  // torchrun's: its index on its host
  std::string_view host;
  std::optional<LogTime> time;
  // The same for all lines of one process, as far as their prefixes tell.
  std::uint64_t process = 0;
};

// Where in a log something is, and who wrote it.
struct LogOrigin {
  std::optional<Rank> rank;
  RankSource rank_source = RankSource::kNone;
  std::optional<Rank> local_rank;
  std::optional<Rank> task;  // Slurm's
  std::string host;
  std::optional<LogTime> time;
  // The same, or else the time of the last line before it that has one.
  std::optional<LogTime> order;
  std::uint64_t line = 0;
};

// Recognises "[rank3]:" (torch), "[default3]:" (torchrun), "3: " (srun -l),
// "[1,3]<stderr>:" (mpirun), "(Worker pid=7, ip=10.0.0.1)" (Ray), a host and a
// colon before one of these (pdsh), times, and "node1 kernel:" after a time.
LogLine read_log_line(std::string_view line);

// The number at the start of a text, if it fits a rank.
std::optional<Rank> leading_rank(std::string_view text);

}  // namespace postflight
