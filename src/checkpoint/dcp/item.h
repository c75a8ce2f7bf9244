#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "checkpoint/model/assembly.h"
#include "checkpoint/model/contents.h"

namespace postflight {

// One item of a distributed checkpoint as a file of its own: the stretch that
// holds it, or what its transforms decode to, about `expected` bytes.
Result<std::unique_ptr<DataFile>> open_item_file(
    const CheckpointContents& checkpoint, const DataFile& file,
    const Extent& extent, std::span<const std::string_view> transforms,
    std::uint64_t expected = 0);

// Opens the item that holds a chunk; the value of
// CheckpointContents::open_item.
Result<std::unique_ptr<AssemblyItem>> open_item(
    const Checkpoint& outer, const CheckpointContents& checkpoint,
    const Assembly& assembly, const AssemblyChunk& chunk);

}  // namespace postflight
