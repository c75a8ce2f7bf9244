#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace postflight {

// The CRC-32 of zip over bytes that follow those `crc` stands for; 0 at first.
std::uint32_t crc32_of(Bytes bytes, std::uint32_t crc = 0);

// Of two stretches, the second of them `size` bytes long, put together.
std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second,
                           std::uint64_t size);

}  // namespace postflight
