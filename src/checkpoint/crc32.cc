#include "checkpoint/crc32.h"

#include <zlib.h>

namespace postflight {

std::uint32_t crc32_of(Bytes bytes, std::uint32_t crc) {
  return static_cast<std::uint32_t>(::crc32_z(
      crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second,
                           std::uint64_t size) {
  return static_cast<std::uint32_t>(
      ::crc32_combine(first, second, static_cast<z_off_t>(size)));
}

}  // namespace postflight
