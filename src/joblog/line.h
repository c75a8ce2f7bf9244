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
  kLabel,  // a launcher's label; one of srun may be a node's number instead
  kLine,   // what torch or mpirun say themselves
};

// A line of a job's log without what launchers and loggers put before it. Its
// views point into the line that was read.
struct LogLine {
  // What follows the prefixes, with its indentation.
  std::string_view text;
  std::optional<Rank> rank;
  RankSource rank_source = RankSource::kNone;
  std::optional<Rank> label;       // srun's label, whatever the rank is
  std::optional<Rank> local_rank;  // torchrun's: the place on its host
  std::string_view host;
  std::optional<LogTime> time;
  // Lines of one process have the same, as far as their prefixes tell.
  std::uint64_t process = 0;
};

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

// Knows "[rank3]:" (torch), "[default3]:" (torchrun), "3: " (srun -l),
// "[1,3]<stderr>:" (mpirun), "(Worker pid=7, ip=10.0.0.1)" (Ray), "node1: "
// before one of these (pdsh), times, and "node1 kernel:" behind them.
LogLine read_log_line(std::string_view line);

// The number at the front of a text, if it could be a rank.
std::optional<Rank> leading_rank(std::string_view text);

}  // namespace postflight
