#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/agent/fault_guard.h"
#include "profile/agent/sample_ring.h"

// Part of the agent: walks the frames of the thread that was interrupted.

namespace postflight {

struct FrameWalk {
  std::uint32_t frames = 0;
  bool torn = false;
  bool cut = false;
};

// Shim frames, which mark entries from C, do not count as frames.
constexpr std::uint32_t kMostSteps = 2;
constexpr std::size_t kWalkWordsPerFrame = kFrameWords * kMostSteps;

// Writes code and instruction of each frame, the innermost first, to `out`,
// which has space for `most` times kWalkWordsPerFrame. `thread` is the address
// of the PyThreadState, `guarded` whether the fault guard holds.
FrameWalk walk_frames(std::uint64_t thread, const RingLayout& layout,
                      bool guarded, std::uint64_t* out, std::uint32_t most);

// A stack as a thread keeps it: code and instruction of each frame, and what
// code_identity() says of its code.
struct WalkedStack {
  std::uint64_t* frames = nullptr;
  std::uint64_t* identities = nullptr;
  std::uint32_t count = 0;
};

// How many of the outermost frames two stacks share.
std::uint32_t shared_frames(const WalkedStack& a, const WalkedStack& b);

}  // namespace postflight
