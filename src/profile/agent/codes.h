#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/agent/sample_ring.h"

// Part of the agent: copies code objects for the engine when they are first
// seen. While a frame runs, its code is there; when the engine looks, it may be
// gone: that of a module is, once it is imported.

namespace postflight {

// Puts a record before that of a sample for each of its frames (pairs of words)
// whose code the engine has not been told. Only while the fault guard holds.
void tell_codes(RingHeader& ring, std::byte* data, const std::uint64_t* frames,
                std::uint32_t count);
// A new ring, whose reader knows nothing yet.
void forget_codes();

}  // namespace postflight
