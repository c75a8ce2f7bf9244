#pragma once

#include "base/limits.h"
#include "joblog/failure_summary.h"
#include "joblog/fold.h"
#include "joblog/pattern.h"
#include "joblog/progress.h"
#include "joblog/traceback.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace postflight {

// Finds the events in the lines of one log.
class LogScanner {
 public:
  explicit LogScanner(const Limits& limits)
      : limits_(limits),
        fold_(limits),
        tracebacks_(limits),
        summaries_(limits),
        progress_(limits) {}

  void take(std::string_view line, std::uint64_t number);
  // After the last line.
  void finish();

  std::vector<FoldedEvent>& events() { return fold_.events(); }
  std::uint64_t dropped() const { return fold_.dropped(); }
  ProgressTable& progress() { return progress_; }
  // The ranks that lines are of, sorted.
  std::vector<Rank> speakers();
  // Slurm's tasks are nodes with several ranks each, or may be.
  bool tasks_are_nodes() const { return tasks_are_nodes_; }
  // The one rank of all lines that have a rank.
  std::optional<Rank> only_rank() const { return only_rank_; }
  bool has_ranks() const { return has_ranks_; }
  struct Heard {
    LogTime time;
    RankSource source = RankSource::kNone;
  };
  // The time of each rank's last line, or of the last before it with a time.
  const std::map<Rank, Heard>& heard() const { return heard_; }
  std::optional<LogTime> heard_without_rank() const {
    return heard_without_rank_;
  }
  // When torchrun last started all processes again, if that has a time.
  std::optional<LogTime> restarted() const { return restarted_; }
  // The first time with a year.
  std::optional<LogTime> full_time() const { return full_time_; }

 private:
  // What a launcher reports when a worker ends, and again in its summary.
  struct Ended {
    LogEvent event;
    LogOrigin origin;
    std::int64_t process = 0;
  };

  bool take_error_file(std::string_view text, std::uint64_t number);
  void note(const LogLine& line);
  void hear(const LogLine& line);
  void note_restart(std::string_view text);
  void finish_attempt();
  void note_time(LogTime time);
  // Without `ranks`, the origin's is used.
  void add(LogEvent event, const LogOrigin& origin,
           std::vector<Rank> ranks = {});
  void add_match(const LogMatch& match, const LogLine& line, LogOrigin origin);
  void add_failure(const WorkerFailure& failure);
  void add_tracebacks();

  const Limits& limits_;
  LogFold fold_;
  TracebackReader tracebacks_;
  FailureSummaryReader summaries_;
  ProgressTable progress_;
  RankBag speakers_;
  RankBag labels_;
  std::vector<Ended> ended_;
  std::unordered_set<std::int64_t> summarised_;  // processes
  std::map<Rank, Heard> heard_;
  std::optional<LogTime> heard_without_rank_;
  std::optional<LogTime> first_time_;
  std::optional<LogTime> last_time_;
  std::optional<LogTime> full_time_;
  std::optional<Rank> only_rank_;
  bool has_ranks_ = false;
  bool tasks_are_nodes_ = false;
  std::uint32_t attempt_ = 0;
  std::optional<LogTime> restarted_;
};

}  // namespace postflight
