#pragma once

#include <string>

#include "checkpoint/tensor/reader.h"

namespace postflight {

struct ArrayTextOptions {
  std::uint64_t whole = 1000;  // elements up to which all are shown
  std::size_t edge = 3;  // otherwise, shown at both ends of each dimension
  std::size_t width = 75;
};

// The elements of a tensor as numpy prints an array. Only those that are shown
// are read.
Result<std::string> array_text(const TensorReader& reader, const Tensor& tensor,
                               const ArrayTextOptions& options = {});

}  // namespace postflight
