#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/model/tensor.h"

namespace postflight {

// One dimension of a copy: the number of elements, and the distance between
// them in the source and in the target, in bytes.
struct CopyDimension {
  std::uint64_t count = 1;
  std::uint64_t from_step = 0;
  std::uint64_t to_step = 0;
};

// Copies elements of `size` bytes between two layouts of the same box. Both are
// known to be in bounds.
void copy_strided(const std::byte* from, std::byte* to, std::size_t size,
                  std::span<const CopyDimension> dimensions);

// Converts elements as stored to their true values: byte-swaps, conjugates,
// negates.
void finish_elements(const Tensor& tensor, bool big_endian,
                     std::span<std::byte> elements);

}  // namespace postflight
