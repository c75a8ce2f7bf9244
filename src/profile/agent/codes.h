#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/agent/memory.h"
#include "profile/agent/sample_ring.h"

// Part of the agent: copies code objects for the engine when they are first
// seen. While a frame runs, its code object exists; by the time the engine
// looks, it may have been freed, as a module's is once it is imported.

namespace postflight {

// A hash of what distinguishes a code object from another that takes its place
// in memory later, often with its name, file and line table at the same
// addresses, too: where these are, and the ends of their contents. 0 if it is
// unreadable. Only while the fault guard is active.
std::uint64_t code_identity(std::uint64_t code, const RingLayout& layout);
// Writes a record, before that of the sample, for each of its frames (pairs of
// words) whose code the engine has not been told of. Only while the fault guard
// is active.
void tell_codes(Arena& arena, const std::uint64_t* frames,
                const std::uint64_t* identities, std::uint32_t count);
// For a new ring, whose reader has been told nothing.
void forget_codes();

}  // namespace postflight
