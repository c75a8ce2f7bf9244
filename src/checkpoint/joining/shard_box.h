#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/joining/tree_rewrite.h"
#include "checkpoint/model/contents.h"

namespace postflight {

// A stretch of a rank's tensor, and where it goes in the whole.
struct ShardBox {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> from;  // in the rank's tensor
  std::uint32_t tensor = 0;
  std::int64_t rank = 0;
};

// Whether a tensor says that it is a part of another: a DTensor or a
// ShardedTensor.
bool is_sharded(const Tensor& tensor);

// Adds the boxes that a rank has of such a tensor, which is at `node`; fails if
// its place in the whole is not known, or is not that of what the rank has.
Result<> add_boxes_of(const CheckpointContents& checkpoint,
                      const TreeRewrite& from, std::int64_t rank,
                      std::uint32_t node, std::vector<ShardBox>& boxes);

}  // namespace postflight
