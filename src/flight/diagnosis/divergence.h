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
  // How many operations the minority left out (or did too much, if negative)
  // for its later ones to be those of the others again; 0 if that is not so.
  int skipped = 0;
};

// Looks at all that the rings still hold, finished or not: operations that
// don't match can finish, and the hang comes later. One for each group that
// has one, in the order of groups.
std::vector<Divergence> find_divergences(const Matching& matching,
                                         const Context& context);

}  // namespace postflight
