#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace postflight {

// What stands before the bytes of an entry. Most of it repeats what the
// directory says, and readers differ in which of the two they believe.
struct LocalHeader {
  // Empty if there is none at `at`, or it is cut off.
  static std::optional<LocalHeader> read(Bytes archive, std::uint64_t at);

  // One that has a descriptor was written before its CRC and sizes were known
  // and may leave them out.
  bool has_descriptor() const { return (flags & 0x0008) != 0; }
  bool is_encrypted() const { return (flags & 0x0001) != 0; }

  std::uint16_t version = 0;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t modified = 0;
  std::uint32_t crc32 = 0;
  std::uint32_t compressed_size = 0;
  std::uint32_t size = 0;
  std::string_view name = {};
  std::uint64_t data = 0;  // where the bytes of the entry begin
};

}  // namespace postflight
