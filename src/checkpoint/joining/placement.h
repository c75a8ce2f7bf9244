#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace postflight {

// How a DTensor lies on one dimension of its mesh.
struct Placement {
  enum class Kind : std::uint8_t {
    kReplicate,
    kShard,    // divided along `dimension`
    kStrided,  // each of `split` pieces of `dimension` is divided
    kPartial,  // the tensor is the sum, or the like, of what the ranks have
  };
  Kind kind = Kind::kReplicate;
  std::int64_t dimension = 0;
  std::int64_t split = 1;
};

// Elements of one dimension, `length` of them from `begin` on.
struct Stretch {
  std::int64_t begin = 0;
  std::int64_t length = 0;

  bool operator==(const Stretch&) const = default;
};
using Stretches = std::vector<Stretch>;

struct MeshPlace {
  std::vector<std::int64_t> mesh;        // its shape
  std::vector<std::int64_t> coordinate;  // of the rank
  std::vector<Placement> placements;     // one for each dimension of the mesh
  // In which order dimensions of the mesh divide the tensor, if that is stated;
  // otherwise from the first to the last.
  std::vector<std::size_t> order = {};
  // A strided placement stands for an order: what comes after it in the mesh
  // divides first (FSDP over tensor parallelism).
  bool strided_is_order = true;
};

// What the rank has of each dimension of a tensor of this shape: stretches of
// the whole that lie one after the other in its part. As torch's chunk(), each
// division gives all ranks the same length but the last ones.
Result<std::vector<Stretches>> stretches_of(std::span<const std::int64_t> shape,
                                            const MeshPlace& place);

}  // namespace postflight
