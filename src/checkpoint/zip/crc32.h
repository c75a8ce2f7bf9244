#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace postflight {

// The CRC-32 of zip of bytes that follow those with the CRC `crc`; 0 at first.
std::uint32_t crc32_of(Bytes bytes, std::uint32_t crc = 0);

// The CRC of two concatenated pieces, the second of `size` bytes.
std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second,
                           std::uint64_t size);

// Says that the CRC of what was read is not the one that was written.
std::string crc_mismatch(std::uint32_t read, std::uint32_t written);

}  // namespace postflight
