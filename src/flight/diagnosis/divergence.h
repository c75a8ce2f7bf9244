#pragma once

#include <cstdint>
#include <vector>

#include "flight/matching/matching.h"

namespace postflight {

// The first collective of a group in which the calls of its members cannot work
// together.
struct Divergence {
  GroupId group;
  std::int64_t sequence = 0;
  Disagreement disagreement;
  // How many operations the minority skipped (if negative: added), so that its
  // later operations match those of the others again; 0 if they do not.
  int skipped = 0;
  // The suspects follow from the group's other operations, not from these
  // calls.
  bool inferred = false;
};

// Examines all recorded operations, completed or not: mismatched operations can
// complete, and the hang comes later. Returns at most one per group, in the
// order of groups.
std::vector<Divergence> find_divergences(const Matching& matching,
                                         const Context& context);

}  // namespace postflight
