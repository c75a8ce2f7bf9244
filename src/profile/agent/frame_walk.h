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
  bool guarded = false;  // was, and is for the thread as it stands
};

// Entry markers come on top of the frames that count.
constexpr std::uint32_t kMostSteps = 2;
constexpr std::size_t kWalkWordsPerFrame = kFrameWords * kMostSteps;

// Writes code and instruction of each frame, the innermost first, to `out`,
// which has room for `most` times kWalkWordsPerFrame. `thread` is the address
// of the thread's state, `blocked` are the signals that were when it was
// interrupted.
FrameWalk walk_frames(std::uint64_t thread, const RingLayout& layout,
                      const sigset_t& blocked, std::uint64_t* out,
                      std::uint32_t most);

// How many of the outermost frames two stacks share.
std::uint32_t shared_frames(const std::uint64_t* a, std::uint32_t a_frames,
                            const std::uint64_t* b, std::uint32_t b_frames);

}  // namespace postflight
