#pragma once

#include <csignal>
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
  bool guarded = false;  // the fault guard was active, and still is
};

// Shim frames, which mark entries from C, do not count as frames.
constexpr std::uint32_t kMostSteps = 2;
constexpr std::size_t kWalkWordsPerFrame = kFrameWords * kMostSteps;

// Writes code and instruction of each frame, the innermost first, to `out`,
// which has space for `most` times kWalkWordsPerFrame. `thread` is the address
// of the PyThreadState, `blocked` the signals that were blocked when the thread
// was interrupted.
FrameWalk walk_frames(std::uint64_t thread, const RingLayout& layout,
                      const sigset_t& blocked, std::uint64_t* out,
                      std::uint32_t most);

// How many of the outermost frames two stacks share.
std::uint32_t shared_frames(const std::uint64_t* a, std::uint32_t a_frames,
                            const std::uint64_t* b, std::uint32_t b_frames);

}  // namespace postflight
