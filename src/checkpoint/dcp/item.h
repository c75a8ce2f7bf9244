#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "checkpoint/model/assembly.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/model/data_file.h"

namespace postflight {

// One item of a distributed checkpoint as a file of its own: the stretch it
// lies at, or what comes out of its transforms, about `expected` bytes.
Result<std::unique_ptr<DataFile>> open_item_file(
    const Checkpoint& checkpoint, const DataFile& file, const Extent& extent,
    std::span<const std::string_view> transforms, std::uint64_t expected = 0);

}  // namespace postflight
