#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flight/model/job.h"
#include "flight/model/rank_set.h"

namespace postflight {

// Which entries to show: all of them by default.
struct EntryFilterOptions {
  NumberSelection ranks = {};
  NumberSelection sequences = {};
  std::vector<std::string> groups = {};  // globs of names or descriptions
  std::vector<std::string> operations =
      {};  // globs, with or without the backend
  std::vector<State> states = {};
};

// The same for one job. Groups and calls are matched once, in the constructor.
class EntryFilter {
 public:
  EntryFilter(const Job& job, EntryFilterOptions options);

  bool takes(Rank rank) const { return options_.ranks.has(rank); }
  bool takes(GroupId group) const { return groups_[group.value]; }
  bool takes(const Entry& entry) const {
    return calls_[entry.call.value] && options_.sequences.has(entry.sequence) &&
           (states_ >> static_cast<unsigned>(entry.state) & 1U) != 0;
  }

 private:
  EntryFilterOptions options_;
  std::vector<bool> groups_;
  std::vector<bool> calls_;
  unsigned states_ = 0;  // one bit per State
};

}  // namespace postflight
