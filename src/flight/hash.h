#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace postflight {

// A fast hash of some bytes. It is seeded anew in each process, so that no file
// can be made of texts that all collide; nothing may depend on its order.
std::uint64_t hash_bytes(Bytes bytes);

}  // namespace postflight
