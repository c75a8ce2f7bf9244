#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "checkpoint/tensor/reader.h"

namespace postflight {

// The minimum or maximum of a tensor; exact for 64-bit integers.
using Extreme = std::variant<double, std::int64_t, std::uint64_t>;

// Statistics of the elements of a tensor; of the magnitudes of complex ones.
struct TensorStatistics {
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  std::uint64_t denormal = 0;  // smaller than its dtype can have in full
  // Of the finite elements; empty if there are none.
  std::optional<Extreme> minimum;
  std::optional<Extreme> maximum;
  std::optional<double> mean;
  std::optional<double> deviation;  // as numpy's std(): of the population
};

// A numeric element as a double; the magnitude of a complex one. Empty for
// opaque dtypes.
std::optional<double> element_value(const Dtype& dtype, const std::byte* at);

// Reads all of it, in pieces.
Result<TensorStatistics> statistics_of(const TensorReader& reader,
                                       const Tensor& tensor);

}  // namespace postflight
