#pragma once

#include "base/bytes.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace postflight {

// Inflates a raw deflate stream that must fill `deflated` and come to `size`
// bytes exactly. Memory grows with what really comes out, not with `size`.
Result<std::vector<std::byte>> inflate(Bytes deflated, std::uint64_t size);

// The first bytes of what `deflated` inflates to, at most `most` of them; fewer
// where it ends or is damaged.
std::vector<std::byte> inflate_front(Bytes deflated, std::size_t most);

}  // namespace postflight
