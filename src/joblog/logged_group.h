#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flight/model/id.h"
#include "joblog/progress.h"
#include "joblog/reach.h"

namespace postflight {

// A rank that speaks of a group.
struct LoggedMember {
  Rank rank;
  std::size_t source = 0;  // its line, an index in JobLog::progress
  Reach reach;
  // A line that has the sizes of the operation, if its own was cut off.
  std::size_t sizes_from = 0;
};

// r = first + stride * g for a rank r with the place g.
struct GroupLayout {
  std::int64_t first = 0;
  std::int64_t stride = 1;

  bool operator==(const GroupLayout&) const = default;
};

// What the lines of several ranks tell of a group.
struct LoggedGroup {
  std::string name;
  std::string description;
  std::vector<LoggedMember> members = {};
  std::map<Rank, Rank> ranks_at = {};  // by their rank in the group
  std::optional<std::int64_t> size = {};
  bool crossed = false;  // several ranks have one place: groups of one name
  bool alone = false;    // made up for one rank whose others are unknown
  bool whole = false;
  bool doubtful = false;
  std::vector<Rank> ranks = {};  // with those that are inferred

  void add_place(Rank place, Rank rank);
  // Keeps one line of each rank, and finds what numbers do not tell.
  void settle(std::span<const LogProgress> lines);
  // What is not known does not differ: sets `sizes_from`.
  void lend_sizes(std::span<const LogProgress> lines);
  // Nothing unless two places or more fit one.
  std::optional<GroupLayout> layout() const;

 private:
  void join_compared(std::span<const LogProgress> lines);
  void keep_oldest();
  void find_size(std::span<const LogProgress> lines);
};

}  // namespace postflight
