#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "flight/matching/entry_role.h"
#include "flight/model/job.h"

namespace postflight {

// Which entries of all ranks belong together.
//
// Collectives are told by their group and number, which count alike on all
// ranks. Messages have no number that two ranks share: the first send from one
// rank to another in a group meets the first receive there, and so on. Where a
// ring has overwritten its beginning, the last that both sides completed are
// taken for the same message instead.

// In what the ranks of a collective first differ.
enum class Difference : std::uint8_t {
  kNone,
  kOperation,
  kSizes,
  kDtypes,
  kBatch,  // one rank's batch has more operations than another's
};

constexpr std::string_view difference_name(Difference difference) {
  switch (difference) {
    case Difference::kNone:
      return "none";
    case Difference::kOperation:
      return "operation";
    case Difference::kSizes:
      return "sizes";
    case Difference::kDtypes:
      return "dtypes";
    case Difference::kBatch:
      return "batch";
  }
  return "";
}

// One entry of a collective.
struct Match {
  std::uint32_t rank = 0;      // place in Job::ranks
  std::uint32_t entry = 0;     // place in its entries
  std::uint32_t position = 0;  // among that rank's entries of the collective
  bool agrees = true;          // with what most ranks called
};

// One collective of a group, or one message between two ranks.
struct Collective {
  GroupId group = {};
  bool message = false;
  // Of a message: its place, from 1, among those of the same two ranks.
  std::int64_t sequence = 0;
  Rank source = {-1};  // of a message; -1 where it is not told
  Rank destination = {-1};
  CallId call = {};  // what most ranks called, first of a batch
  Difference difference = Difference::kNone;
  bool majority = true;  // more than half of those who joined agree

  // Ranks, by what their dumps say.
  std::uint32_t expected = 0;
  std::uint32_t joined = 0;
  std::uint32_t absent = 0;  // surely not there: the dump ends before it
  std::uint32_t without_dump = 0;
  // Ranks that joined, by the state of the entry that counts.
  std::uint32_t scheduled = 0;
  std::uint32_t started = 0;
  std::uint32_t completed = 0;
  std::uint32_t pending = 0;  // neither completed nor retired

  std::uint64_t first_match = 0;
  std::uint32_t match_count = 0;

  // Overwritten, cut off or left out of the dump.
  std::uint32_t unknown() const {
    return expected - joined - absent - without_dump;
  }
};

struct CollectiveTable {
  std::vector<EntryRoles> roles;  // of each of Job::ranks
  // In order of groups; each group's collectives by number, then its messages
  // by sender and receiver.
  std::vector<Collective> collectives;
  std::vector<Match> matches;  // in order of collectives, ranks and entries
};

// Takes time linear in the entries for the numbers that recorders write.
CollectiveTable match_collectives(const Job& job);

}  // namespace postflight
