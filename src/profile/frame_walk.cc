#include "profile/frame_walk.h"

#include <cstddef>
#include <cstring>

#include "profile/fault_guard.h"

namespace postflight {
namespace {

// Entry markers come on top of the frames that count.
constexpr std::uint32_t kStepsPerFrame = 2;

// Reads frames directly while the guard holds, else through the kernel.
struct FrameReader {
  const RingLayout& layout;
  FrameOffsets offsets;
  bool guarded;

  bool word(std::uint64_t address, std::uint64_t& value) const {
    return guarded ? guarded_word(address, value)
                   : checked_copy(&value, address, sizeof(value));
  }

  bool frame(std::uint64_t address, FrameWords& words) const {
    if (guarded)
      return guarded_frame(address, offsets, words);
    std::byte copy[256];
    if (!checked_copy(copy, address, layout.frame_size))
      return false;
    std::memcpy(&words.code, copy + offsets.code, sizeof(words.code));
    std::memcpy(&words.instruction, copy + offsets.instruction,
                sizeof(words.instruction));
    std::memcpy(&words.previous, copy + offsets.previous,
                sizeof(words.previous));
    words.owner = static_cast<std::uint32_t>(copy[offsets.owner]);
    words.is_entry = static_cast<std::uint32_t>(copy[offsets.is_entry]);
    return true;
  }
};

}  // namespace

FrameWalk walk_frames(std::uint64_t thread, const RingLayout& layout,
                      const sigset_t& blocked, std::uint64_t* out,
                      std::uint32_t most) {
  const FrameReader reader = {
      .layout = layout,
      .offsets = {.code = layout.frame_code,
                  .instruction = layout.frame_instruction,
                  .previous = layout.frame_previous,
                  .owner = layout.has_owner != 0 ? layout.frame_owner
                                                 : layout.frame_code,
                  .is_entry = layout.has_is_entry != 0 ? layout.is_entry
                                                       : layout.frame_code},
      .guarded = fault_guard_holds(blocked)};
  const std::uint64_t code_mask = ~std::uint64_t{layout.code_mask_low};
  const std::uint64_t instruction_mask =
      layout.has_index != 0 ? UINT32_MAX : ~kEntryBit;
  FrameWalk walk;
  std::uint64_t frame = 0;
  walk.torn = !reader.word(thread + layout.thread_frame, frame);
  if (frame != 0 && layout.has_top_frame != 0)
    walk.torn = !reader.word(frame + layout.top_frame, frame);
  for (std::uint32_t steps = 0; frame != 0 && !walk.torn; ++steps) {
    if (walk.frames == most) {
      walk.cut = true;
      break;
    }
    FrameWords words;
    if (frame % 8 != 0 || steps > kStepsPerFrame * most ||
        !reader.frame(frame, words) || words.previous == frame) {
      walk.torn = true;
      break;
    }
    if (layout.has_owner != 0 && words.owner >= layout.first_shim_owner) {
      if (walk.frames != 0)
        out[std::size_t{2} * walk.frames - 1] |= kEntryBit;
    } else {
      const bool entry = layout.has_is_entry != 0 ? words.is_entry != 0
                                                  : layout.all_entries != 0;
      out[std::size_t{2} * walk.frames] = words.code & code_mask;
      out[std::size_t{2} * walk.frames + 1] =
          (words.instruction & instruction_mask) | (entry ? kEntryBit : 0);
      ++walk.frames;
    }
    frame = words.previous;
  }
  return walk;
}

std::uint32_t shared_frames(const std::uint64_t* a, std::uint32_t a_frames,
                            const std::uint64_t* b, std::uint32_t b_frames) {
  const std::uint32_t most = a_frames < b_frames ? a_frames : b_frames;
  a += std::size_t{2} * a_frames;
  b += std::size_t{2} * b_frames;
  std::uint32_t shared = 0;
  for (; shared < most; ++shared) {
    a -= 2;
    b -= 2;
    if (a[0] != b[0] || a[1] != b[1])
      break;
  }
  return shared;
}

}  // namespace postflight
