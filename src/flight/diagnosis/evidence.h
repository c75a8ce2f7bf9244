#pragma once

#include <cstdint>
#include <vector>

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// Questions that several rules ask about a case, and what they add to a
// verdict.

// The ranks at these indexes of WaitGraph::world, sorted.
std::vector<Rank> ranks_at(const Case& facts,
                           const std::vector<std::uint32_t>& places);
// The indexes of the ranks of all roots of one kind, sorted.
std::vector<std::uint32_t> roots_of(const Case& facts, WaitRoot::Kind kind);
// The wait in which most ranks wait for one of `ranks`; if there are several,
// the oldest.
const Wait* main_wait(const Case& facts,
                      const std::vector<std::uint32_t>& ranks);
// Whether the wait certainly lasted longer than an operation in progress: by
// the newest times in the dumps of those that wait or are absent.
bool lasted(const Case& facts, const Wait& wait);
// Whether nothing moves: the wait lasted, a watchdog gave up, or the job
// hardly ever looked like this while it moved. `absent` are the ranks that are
// idle while the others wait; they may be empty.
bool stands(const Case& facts, const Wait& wait,
            const std::vector<std::uint32_t>& absent);
// Whether the dumps show that it has not lasted: a started operation is seen to
// be so at the moment of the dump.
bool just_begun(const Case& facts, const Wait& wait);
// Whether a moving job is found with all members of the group in an operation
// more often than not.
bool usually_waits(const Case& facts, const Wait& wait);
// The wait that `entry`, called on group `used`, was meant for: the same call
// from the same line of code, in another group that waits for this rank.
// nullptr if there is none.
const Wait* meant_for(const Case& facts, Rank rank, const Entry& entry,
                      GroupId used);
// Whether the rank's previous operation in that group was the same, on the same
// tensors.
bool is_usual_there(const Case& facts, Rank rank, const Wait& wait);
// The wait in which the rank is alone, on another group than `meant`, in the
// call that others made on `meant` as `entry`. nullptr if there is none.
const Wait* strayed_to(const Case& facts, Rank rank, const Entry& entry,
                       GroupId meant);

void tell_operation(const Case& facts, const Wait& wait, Verdict& verdict);
void add_waiting(const Case& facts, const Wait& wait, Verdict& verdict);
// Adds the last entry of each of the ranks.
void add_last(const Case& facts, const std::vector<Rank>& ranks,
              Verdict& verdict);

}  // namespace postflight
