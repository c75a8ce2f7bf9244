#pragma once

#include <memory>

#include "checkpoint/model/assembly.h"
#include "checkpoint/model/contents.h"

namespace postflight {

// Opens a chunk that is a part of another tensor of the checkpoint; the value
// of CheckpointContents::open_item. Checking it compares its replicas.
Result<std::unique_ptr<AssemblyItem>> open_part(
    const Checkpoint& checkpoint, const CheckpointContents& contents,
    const Assembly& assembly, const AssemblyChunk& chunk);

// The bytes of a tensor in the mapped file, if they lie there as they are.
std::optional<Bytes> bytes_in_file(const CheckpointContents& checkpoint,
                                   const Tensor& tensor);

// Whether two tensors have the same elements: by the CRCs of their records, or
// else by their bytes in the file, up to `most` of them. Empty if neither
// tells.
std::optional<bool> have_same_bytes(const CheckpointContents& checkpoint,
                                    const Tensor& a, const Tensor& b,
                                    std::uint64_t most);

}  // namespace postflight
