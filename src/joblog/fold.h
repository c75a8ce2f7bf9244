#pragma once

#include "base/limits.h"
#include "joblog/event.h"
#include "joblog/line.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace postflight {

// Collects ranks in any order, with duplicates.
class RankBag {
 public:
  void add(Rank rank);
  // Without duplicates.
  std::vector<Rank> sorted();
  bool empty() const { return ranks_.empty(); }
  std::size_t size() const { return ranks_.size(); }

 private:
  void tidy();

  std::vector<Rank> ranks_;
  std::size_t tidied_ = 32;
};

// An event and what all lines that report it say.
struct FoldedEvent {
  LogEvent event;  // of the first line, without `ranks`
  std::optional<LogTime> order;
  std::size_t file = 0;
  // Indexed by RankSource; `rank_source` is that of `event.rank`.
  RankSource rank_source = RankSource::kNone;
  std::array<RankBag, 4> ranks;
  bool unattributed = false;  // some line has no rank
};

// Joins events that differ only in rank, process or time, and keeps the first
// of each. Events beyond the limits are counted, not kept.
class LogFold {
 public:
  explicit LogFold(const Limits& limits) : limits_(limits) {}

  // `ranks` are those of the event's lines, and `source` how they are known.
  void add(const LogEvent& event, std::optional<LogTime> order,
           std::size_t file, RankSource source, std::span<const Rank> ranks);

  // How many more ranks may be kept.
  std::uint64_t ranks_left() const {
    return limits_.max_log_event_ranks -
           std::min(limits_.max_log_event_ranks, ranks_);
  }
  std::vector<FoldedEvent>& events() { return events_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  const Limits& limits_;
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<FoldedEvent> events_;
  std::array<std::uint64_t, kLogEventKinds> kinds_ = {};
  std::uint64_t ranks_ = 0;
  std::uint64_t dropped_ = 0;
};

// Orders by time where both have one, else by file and line. Events with a time
// come first.
bool comes_before(const FoldedEvent& a, const FoldedEvent& b);

}  // namespace postflight
