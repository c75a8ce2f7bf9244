#pragma once

#include <cstddef>
#include <span>

#include "checkpoint/model/tensor.h"
#include "checkpoint/tensor/storage_reader.h"

namespace postflight {

// What lies between two wanted pieces is read too, up to a page.
constexpr std::uint64_t kLongestGap = 4096;

// Reads the elements of a tensor that is known to stay inside its storage into
// row-major order, as they lie there.
//
// The dimensions are gone through in the order in which the storage has them.
// The innermost ones make a block that is read in one piece: as long as gaps
// between what is wanted are no longer than a page, which the disk reads
// anyway, and the block fits the cache that it is then put in order from.
//
// A large tensor most of whose bytes are out of order is put in order right
// from the mapped file instead, if `mapped`: by `threads`, 0 being one for each
// processor.
struct GatherOptions {
  bool mapped = false;
  std::size_t threads = 1;
};

Result<> gather(StorageReader& reader, const Tensor& tensor,
                std::span<std::byte> to, const GatherOptions& options = {});

}  // namespace postflight
