#pragma once

#include "base/bytes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace postflight {

// Inflates a raw deflate stream that must fill `deflated` and come to `size`
// bytes exactly. Memory grows with what really comes out, not with `size`.
Result<std::vector<std::byte>> inflate(Bytes deflated, std::uint64_t size);

}  // namespace postflight
