#pragma once

#include "base/limits.h"
#include "joblog/line.h"
#include "joblog/progress_line.h"

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace postflight {

// How far a rank came in a process group, by the last that its log says.
struct LogProgress {
  std::optional<Rank> rank;   // in the job
  bool named = false;         // the log names the group
  std::string group;          // "5"; empty if it has no name
  std::string description;    // "mesh_tp", or empty
  std::optional<Rank> place;  // the rank in the group

  struct Operation {
    std::int64_t sequence = 0;
    std::string type;          // "ALLREDUCE"
    std::int64_t inputs = -1;  // elements; -1 if unknown
    std::int64_t outputs = -1;
    std::string dtype;
    std::int64_t timeout_ms = 0;
  };
  std::optional<Operation> pending;  // what it gave up on, or called
  bool timed_out = false;
  bool fingerprint = false;  // `pending` is what DETAIL compared
  std::optional<std::int64_t> failed;
  std::optional<std::int64_t> enqueued;
  std::optional<std::int64_t> started;
  std::optional<std::int64_t> completed;
  std::optional<std::int64_t> members;

  std::optional<LogTime> time;
  std::string host;
  std::string file;
  std::uint64_t line = 0;
  std::string text;  // what the line says

  // The group of all ranks.
  bool of_all() const {
    return !named || description == "default_pg" ||
           (description.empty() && group == "0");
  }
};

// What a log says of ranks itself.
struct LogClaim {
  LoggedClaim::Kind kind = LoggedClaim::Kind::kBarrier;
  std::vector<Rank> places;     // within the group
  std::optional<Rank> place;    // of who wrote it
  std::optional<Rank> highest;  // of all places that its report mentions
  std::optional<std::int64_t> sequence;
  std::optional<Rank> rank;  // that wrote it
  std::optional<LogTime> time;
  std::string file;
  std::uint64_t line = 0;
  std::string text;
};

// Ranks and groups whose progress is kept from all logs of a job: each takes
// the room of some twenty ranks of events.
constexpr std::uint64_t max_log_progress(const Limits& limits) {
  return limits.max_log_event_ranks / 20;
}

// Collects what the lines of one log say of the progress of its processes.
class ProgressTable {
 public:
  explicit ProgressTable(const Limits& limits) : limits_(limits) {}

  void take(const LogLine& line, const LogOrigin& origin);
  // What was said was of an earlier attempt.
  void forget();
  // After the last line.
  void finish();

  struct Said {
    LogProgress progress;
    LogOrigin origin;  // its rank may become known later
  };
  std::vector<Said>& said() { return said_; }
  struct Claimed {
    LogClaim claim;
    LogOrigin origin;
    std::uint64_t process = 0;
  };
  std::vector<Claimed>& claims() { return claims_; }
  std::optional<std::int64_t> world_size() const { return world_size_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  // A process, its rank in the group, and the group.
  using Key = std::tuple<std::uint64_t, std::int32_t, std::string, std::string>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  Said* find_or_add(std::uint64_t process, const LogProgress& progress,
                    const LogOrigin& origin);
  void note(const ProgressLine& found, const LogLine& line,
            const LogOrigin& origin);
  void note_calls(const std::vector<LoggedCall>& calls, const LogLine& line,
                  const LogOrigin& origin);
  std::string shortened(std::string_view text) const;

  const Limits& limits_;
  std::vector<Said> said_;
  std::vector<std::uint64_t> processes_;  // of each
  void note_claim(LoggedClaim claim, const LogLine& line,
                  const LogOrigin& origin);

  std::unordered_map<Key, std::size_t, KeyHash> places_;
  // Of each process, the place of who writes a report.
  std::unordered_map<std::uint64_t, Rank> reporters_;
  std::vector<Claimed> claims_;
  std::optional<std::int64_t> world_size_;
  std::uint64_t dropped_ = 0;
};

}  // namespace postflight
