#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace postflight {

// A fast hash of some bytes. It is seeded anew in each process, so that no file
// can be made of texts that all collide; nothing may depend on its order.
std::uint64_t hash_bytes(Bytes bytes);
inline std::uint64_t hash_text(std::string_view text) {
  return hash_bytes(as_bytes(text));
}
// Of what hashed to `hash`, followed by a number.
std::uint64_t hash_on(std::uint64_t hash, std::uint64_t number);

}  // namespace postflight
