#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/agent/sample_ring.h"

// Part of the agent: copies code objects for the engine when they are first
// seen. While a frame runs, its code object exists; by the time the engine
// looks, it may have been freed, as a module's is once it is imported.

namespace postflight {

// Writes a record, before that of the sample, for each of its frames (pairs of
// words) whose code the engine has not been told of. Only while the fault guard
// is active.
void tell_codes(RingHeader& ring, std::byte* data, const std::uint64_t* frames,
                std::uint32_t count);
// For a new ring, whose reader has been told nothing.
void forget_codes();

}  // namespace postflight
