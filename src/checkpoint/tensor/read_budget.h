#pragma once

#include <cstdint>

#include "base/error.h"
#include "checkpoint/model/checkpoint.h"

namespace postflight {

// What the tensors of a checkpoint may come to when they are read: some times
// as many bytes as its files have, and Limits::max_materialised_bytes besides.
// A view of one byte can repeat it a trillion times.
class ReadBudget {
 public:
  explicit ReadBudget(const Checkpoint& checkpoint);

  // Takes what reading a tensor costs; fails, and takes nothing, if that is
  // more than is left.
  Result<> take(const Tensor& tensor);

 private:
  const Checkpoint& checkpoint_;
  std::uint64_t left_;
};

}  // namespace postflight
