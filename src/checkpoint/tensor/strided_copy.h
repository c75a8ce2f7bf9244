#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "checkpoint/model/tensor.h"

namespace postflight {

// One dimension of a copy: how many elements, and how far apart in bytes they
// lie here and there.
struct CopyDimension {
  std::uint64_t count = 1;
  std::uint64_t from_step = 0;
  std::uint64_t to_step = 0;
};

// Copies elements of `size` bytes between two layouts of the same box. The
// caller knows that both stay inside their memory.
void copy_strided(const std::byte* from, std::byte* to, std::size_t size,
                  std::span<const CopyDimension> dimensions);

// Makes the true values of elements as they lie in the file: turns their bytes
// around, conjugates, negates.
void finish_elements(const Tensor& tensor, bool big_endian,
                     std::span<std::byte> elements);

}  // namespace postflight
