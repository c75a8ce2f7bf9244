#pragma once

#include <cstdint>

namespace postflight {

// The bytes [offset, offset + size) of something.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  std::uint64_t end() const { return offset + size; }

  bool operator==(const Extent&) const = default;
};

}  // namespace postflight
