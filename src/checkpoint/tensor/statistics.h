#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "checkpoint/tensor/reader.h"

namespace postflight {

// The least or largest number of a tensor; of integers exactly.
using Extreme = std::variant<double, std::int64_t, std::uint64_t>;

// What the numbers of a tensor are like. Of complex ones the absolute values.
struct TensorStatistics {
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  // Of those that are finite; nothing if there is none.
  std::optional<Extreme> minimum;
  std::optional<Extreme> maximum;
  std::optional<double> mean;
  std::optional<double> deviation;  // as numpy's std(): of the population
};

// An element of a dtype that has numbers, as a double: of complex ones the
// absolute value. Nothing for bytes without a meaning.
std::optional<double> element_value(const Dtype& dtype, const std::byte* at);

// Reads all of it, in pieces.
Result<TensorStatistics> statistics_of(const TensorReader& reader,
                                       const Tensor& tensor);

}  // namespace postflight
