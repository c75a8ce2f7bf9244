#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/model/checkpoint.h"
#include "checkpoint/tensor/reader.h"

namespace postflight {

// Reads any stretch of a tensor's elements in row-major order, as they are
// after strides, byte order, conjugation and negation. Strided and packed
// elements, which have no offset that a stretch could start at, are read whole
// first. Records are not compared with their CRC. The checkpoint and the tensor
// outlive it.
class ElementReader {
 public:
  ElementReader(const Checkpoint& checkpoint, const Tensor& tensor)
      : reader_(checkpoint, {.threads = 1, .crc = CrcCheck::kNever}),
        tensor_(tensor) {}

  // Bytes from `offset` on; both are multiples of the size of an element.
  Result<> read(std::uint64_t offset, std::span<std::byte> to);

 private:
  TensorReader reader_;
  const Tensor& tensor_;
  std::vector<std::byte> whole_;
};

}  // namespace postflight
