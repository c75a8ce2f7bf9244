#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/tensor_reader.h"

namespace postflight {

// What the numbers of a tensor are like. Of complex ones the absolute values.
struct TensorStatistics {
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  // Of those that are finite; nothing if there is none.
  std::optional<double> minimum;
  std::optional<double> maximum;
  double mean = 0;
  double deviation = 0;  // as numpy's std(): of the population
};

// An element of a dtype that has numbers, as a double: of complex ones the
// absolute value. Nothing for bytes without a meaning.
std::optional<double> element_value(const Dtype& dtype, const std::byte* at);

// Reads all of it, in pieces.
Result<TensorStatistics> statistics_of(const TensorReader& reader,
                                       const Tensor& tensor);

}  // namespace postflight
