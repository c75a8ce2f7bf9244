#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/slice.h"
#include "checkpoint/tensor/statistics.h"

namespace postflight {

// A tensor, or a slice of it, and what its elements are like.
struct Inspection {
  std::optional<TensorSlice> slice;
  std::optional<TensorStatistics> statistics;
  bool readable = false;  // whether there are elements
  std::string remark;     // why there are no elements, or no statistics

  const Tensor& tensor_of(const Tensor& whole) const {
    return slice ? slice->tensor : whole;
  }
};

// Fails if the elements cannot be read, or if `slice`, as parse_slice() reads
// it, does not fit the tensor.
Result<Inspection> inspect(const Checkpoint& checkpoint, const Tensor& tensor,
                           std::string_view slice);

}  // namespace postflight
