#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace postflight {

// A fast hash, seeded per process so that no file can be crafted to make its
// keys collide. Nothing may depend on the order it induces.
std::uint64_t hash_bytes(Bytes bytes);
inline std::uint64_t hash_text(std::string_view text) {
  return hash_bytes(as_bytes(text));
}
// Extends `hash` by a number.
std::uint64_t hash_on(std::uint64_t hash, std::uint64_t number);

}  // namespace postflight
