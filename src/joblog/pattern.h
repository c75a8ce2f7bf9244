#pragma once

#include "flight/model/id.h"
#include "joblog/event.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace postflight {

// Tasks of Slurm, which are ranks or nodes.
struct TaskRange {
  Rank first;
  Rank last;

  bool operator==(const TaskRange&) const = default;
};

// What one line says by itself. Views point into it.
struct LogMatch {
  LogEventKind kind = LogEventKind::kTraceback;
  std::string_view message;
  std::string_view host;
  // The rank in "[Rank 3]": a rank of the whole job only if the group is not
  // known to be another.
  std::optional<Rank> group_rank;
  // Whom the line is about, where that is not who wrote it.
  std::optional<Rank> rank;
  std::vector<TaskRange> tasks;
  std::optional<Rank> local_rank;
  std::optional<std::int64_t> number;
  std::optional<std::int64_t> process;  // an id of the system
  std::size_t at = 0;                   // where in the text it was found
};

// Looks for the known messages in the text of a line, the most telling first.
std::optional<LogMatch> match_log_text(std::string_view text);

}  // namespace postflight
