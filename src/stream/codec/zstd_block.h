#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace postflight {

// One zstd frame that holds `bytes`.
Result<std::vector<std::byte>> compress_block(Bytes bytes, int level);
// Decodes a frame that holds exactly as many bytes as `to`.
Result<> decompress_block(Bytes frame, std::span<std::byte> to);

}  // namespace postflight
