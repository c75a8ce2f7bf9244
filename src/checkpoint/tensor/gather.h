#pragma once

#include <cstddef>
#include <span>

#include "checkpoint/model/tensor.h"
#include "checkpoint/tensor/storage_reader.h"

namespace postflight {

// Gaps between wanted pieces up to this size are read as well.
constexpr std::uint64_t kLongestGap = 4096;

// Reads the elements of a tensor, which is known to stay inside its storage,
// into row-major order. Their bytes are not converted.
//
// The dimensions are visited in the order of their strides in the storage. The
// innermost ones form a block that is read at once: as long as gaps are no
// longer than a page, which the disk reads anyway, and the block fits the cache
// that it is then copied from.
//
// If `mapped`, a large tensor most of whose bytes are not in order is instead
// copied straight from the mapped file, by `threads` threads (0: one for each
// processor).
struct GatherOptions {
  bool mapped = false;
  std::size_t threads = 1;
};

Result<> gather(StorageReader& reader, const Tensor& tensor,
                std::span<std::byte> to, const GatherOptions& options = {});

}  // namespace postflight
