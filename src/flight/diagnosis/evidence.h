#pragma once

#include <cstdint>
#include <vector>

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// What several rules look for in a case, and put into a verdict.

// By their places in WaitGraph::world; sorted.
std::vector<Rank> ranks_at(const Case& facts,
                           const std::vector<std::uint32_t>& places);
// Places of the ranks of all roots of one kind, sorted.
std::vector<std::uint32_t> roots_of(const Case& facts, WaitRoot::Kind kind);
// The wait in which most ranks wait for one of `ranks`; of those, the oldest.
const Wait* main_wait(const Case& facts,
                      const std::vector<std::uint32_t>& ranks);
// Whether the wait lasted so long by the job's own times that it is no
// operation that was just under way.
bool lasted(const Case& facts, const Wait& wait);
// Ranks of a group that dump while they get on are at different places; where
// only one lags behind, it may as well be stuck.
bool is_moving(const Case& facts, const Wait& wait);
// Where an operation of `used` was meant to go: to another group, in which the
// rank is missed in the same call by the same line of code. Or nullptr.
const Wait* meant_for(const Case& facts, Rank rank, const Entry& entry,
                      GroupId used);
// Whether the rank's operation before this one in its group was the same, on
// the same tensors.
bool is_usual_there(const Case& facts, Rank rank, const Wait& wait);
// Where the rank went with what others did as `entry` in group `meant`: to
// another group, in which it waits alone. Or nullptr.
const Wait* strayed_to(const Case& facts, Rank rank, const Entry& entry,
                       GroupId meant);

void tell_operation(const Case& facts, const Wait& wait, Verdict& verdict);
void add_waiting(const Case& facts, const Wait& wait, Verdict& verdict);
// What each of the ranks did last.
void add_last(const Case& facts, const std::vector<Rank>& ranks,
              Verdict& verdict);

}  // namespace postflight
