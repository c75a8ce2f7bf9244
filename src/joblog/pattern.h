#pragma once

#include "flight/model/id.h"
#include "joblog/event.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace postflight {

// Slurm's tasks, which are ranks or nodes.
struct TaskRange {
  Rank first;
  Rank last;

  bool operator==(const TaskRange&) const = default;
};

// What one line says on its own. Views point into it.
struct LogMatch {
  LogEventKind kind = LogEventKind::kTraceback;
  std::string_view message;
  std::string_view host;
  // The rank in "[Rank 3]", unless it is known to be that of another group than
  // the whole job.
  std::optional<Rank> group_rank;
  // The rank that the line is about, if another wrote it.
  std::optional<Rank> rank;
  std::vector<TaskRange> tasks;
  std::optional<Rank> local_rank;
  std::optional<std::int64_t> number;
  std::optional<std::int64_t> process;  // its pid
  std::size_t at = 0;                   // offset in the text
};

// Looks for known messages in the text of a line, the most specific first.
std::optional<LogMatch> match_log_text(std::string_view text);

}  // namespace postflight
