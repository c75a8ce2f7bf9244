#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/model/tensor.h"

namespace postflight {

// A part of a tensor: a tensor over the same storage, and its shape and
// strides. It can be moved, but not copied: `tensor` has views of the vectors.
struct TensorSlice {
  Tensor tensor;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> stride;
};

// Which elements of one dimension: from `start` on, `count` of them, `step`
// apart. `drop` leaves the dimension out of the result, as an index does.
struct SliceRange {
  std::uint64_t start = 0;
  std::uint64_t count = 0;
  std::uint64_t step = 1;
  bool drop = false;
};

// Reads "[0:128, :, 3]" as numpy does for a tensor of this shape: negative
// numbers count from the end, steps are positive, other dimensions are whole,
// and
// ... stands for as many as are left.
Result<std::vector<SliceRange>> parse_slice(
    std::string_view text, std::span<const std::int64_t> shape);

// One range for each dimension, inside the tensor. If only some chunks of the
// tensor are unavailable, reading the slice tells whether it needs them.
TensorSlice slice_tensor(const Tensor& tensor,
                         std::span<const SliceRange> ranges);

}  // namespace postflight
