#pragma once

#include <cstdint>
#include <vector>

#include "flight/matching/matching.h"

namespace postflight {

// One entry of a collective or message.
struct Match {
  std::uint32_t rank = 0;   // place in Job::ranks
  std::uint32_t entry = 0;  // place in its entries
  // Its place in the batch. Of a batch whose beginning was overwritten, the
  // last operation has the place of the others' last one.
  std::uint32_t position = 0;
  bool agrees = true;  // with what most ranks called
  bool done = false;   // that rank's part of the collective
};

// One collective of a group, or one message between two ranks.
struct Collective {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  GroupId group = {};
  bool message = false;
  // Of a message: its place, from 1, among those of the same two ranks.
  std::int64_t sequence = 0;
  // A group that was destroyed and created again counts from 1 again; true for
  // what it did before.
  bool earlier = false;
  std::uint32_t incarnation = 0;  // of the group, from 0
  Rank source = {-1};             // of a message; -1 where it is not told
  Rank destination = {-1};
  CallId call = {};  // what most ranks called, first of a batch
  Difference difference = Difference::kNone;
  bool blocks = false;   // the difference keeps it from working
  bool majority = true;  // more than half of those who joined agree
  std::uint32_t disagreement = kNone;  // place in CollectiveTable

  // Ranks, by what their dumps say.
  std::uint32_t expected = 0;
  std::uint32_t joined = 0;
  std::uint32_t absent = 0;  // surely not there: the dump ends before it
  std::uint32_t without_dump = 0;
  // Ranks that joined, by the state of the entry that counts.
  std::uint32_t scheduled = 0;
  std::uint32_t started = 0;
  std::uint32_t completed = 0;
  std::uint32_t pending = 0;  // joined and not done

  std::uint64_t first_match = 0;
  std::uint32_t match_count = 0;

  // Overwritten, cut off or left out of the dump.
  std::uint32_t unknown() const {
    return expected - joined - absent - without_dump;
  }
};

// All collectives and messages of a job as rows.
struct CollectiveTable {
  // In order of groups; each group's collectives by number, then its messages
  // by sender and receiver.
  std::vector<Collective> collectives;
  std::vector<Match> matches;  // in order of collectives, ranks and entries
  std::vector<Disagreement> disagreements;
};

// Takes time linear in the entries for the numbers that recorders write.
CollectiveTable tabulate(const Matching& matching);

}  // namespace postflight
