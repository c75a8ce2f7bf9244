#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace postflight {

// Tensors of rank files whose shards say nothing of the whole are joined along
// a dimension, in the order of the ranks.
struct Concatenation {
  std::string glob;  // of their keys
  std::size_t dimension = 0;
};

// How the trees of rank files become one.
struct Joining {
  // Also if no tensor says that it is a shard; and compare what is on several
  // ranks by all of its bytes.
  bool always = false;
  std::vector<Concatenation> concatenations = {};
};

}  // namespace postflight
