#include "profile/agent/frame_walk.h"

#include <cstddef>
#include <cstring>

#include "profile/agent/fault_guard.h"

namespace postflight {
namespace {

// As guarded_walk(), but reads through the kernel.
std::uint64_t* checked_walk(std::uint64_t frame, const FrameOffsets& offsets,
                            std::uint64_t* out, std::uint64_t most,
                            std::uint64_t& rest) {
  for (rest = frame; rest != 0 && rest % 8 == 0 && most > 0; --most) {
    std::byte copy[256];
    std::uint64_t previous = 0;
    std::uint16_t flags = 0;
    if (!checked_copy(copy, rest, offsets.size))
      break;
    std::memcpy(&out[0], copy + offsets.code, sizeof(*out));
    std::memcpy(&out[1], copy + offsets.instruction, sizeof(*out));
    std::memcpy(&flags, copy + offsets.flags, sizeof(flags));
    std::memcpy(&previous, copy + offsets.previous, sizeof(previous));
    if (previous == rest)
      break;
    out[2] = flags;
    out += kFrameWords;
    rest = previous;
  }
  return out;
}

// The offset of a frame's owner and is_entry: two adjacent bytes, or one of
// them.
std::uint32_t flags_offset(const RingLayout& layout) {
  if (layout.has_owner == 0)
    return layout.has_is_entry != 0 ? layout.is_entry : layout.frame_code;
  if (layout.has_is_entry == 0)
    return layout.frame_owner;
  return layout.is_entry < layout.frame_owner ? layout.is_entry
                                              : layout.frame_owner;
}

}  // namespace

FrameWalk walk_frames(std::uint64_t thread, const RingLayout& layout,
                      bool guarded, std::uint64_t* out, std::uint32_t most) {
  const auto word = [guarded](std::uint64_t address, std::uint64_t& value) {
    return guarded ? guarded_word(address, value)
                   : checked_copy(&value, address, sizeof(value));
  };
  FrameWalk walk;
  std::uint64_t frame = 0;
  walk.torn = !word(thread + layout.thread_frame, frame);
  if (frame != 0 && layout.has_top_frame != 0)
    walk.torn = !word(frame + layout.top_frame, frame);
  if (frame == 0 || walk.torn)
    return walk;

  const FrameOffsets offsets = {.code = layout.frame_code,
                                .instruction = layout.frame_instruction,
                                .previous = layout.frame_previous,
                                .flags = flags_offset(layout),
                                .size = layout.frame_size};
  std::uint64_t rest = 0;
  const std::uint64_t* const end = (guarded ? guarded_walk : checked_walk)(
      frame, offsets, out, kMostSteps * most, rest);
  const std::uint64_t code_mask = ~std::uint64_t{layout.code_mask_low};
  const std::uint64_t instruction_mask =
      layout.has_index != 0 ? UINT32_MAX : ~kEntryBit;
  const bool has_owner = layout.has_owner != 0;
  const std::uint64_t first_shim =
      has_owner ? layout.first_shim_owner : UINT64_MAX;
  const std::uint32_t owner_shift =
      has_owner ? 8 * (layout.frame_owner - offsets.flags) : 0;
  const std::uint64_t entry_mask =
      layout.has_is_entry != 0
          ? std::uint64_t{0xff} << (8 * (layout.is_entry - offsets.flags))
          : 0;
  const std::uint64_t every =
      layout.has_is_entry == 0 && layout.all_entries != 0 ? kEntryBit : 0;
  // Compacts in place: a frame takes fewer words than were read of it.
  std::uint64_t* to = out;
  for (const std::uint64_t* at = out; at != end; at += kFrameWords) {
    const std::uint64_t flags = at[2];
    if (((flags >> owner_shift) & 0xff) >= first_shim) {
      if (to != out)
        to[-1] |= kEntryBit;
      continue;
    }
    if (walk.frames == most) {
      walk.cut = true;
      return walk;
    }
    to[0] = at[0] & code_mask;
    to[1] = (at[1] & instruction_mask) | every |
            ((flags & entry_mask) != 0 ? kEntryBit : 0);
    to += 2;
    ++walk.frames;
  }
  walk.cut = rest != 0 && walk.frames == most;
  walk.torn = rest != 0 && !walk.cut;
  return walk;
}

std::uint32_t shared_frames(const WalkedStack& a, const WalkedStack& b) {
  const std::uint32_t most = a.count < b.count ? a.count : b.count;
  std::uint32_t shared = 0;
  for (; shared < most; ++shared) {
    const std::size_t i = a.count - shared - 1;
    const std::size_t j = b.count - shared - 1;
    if (a.frames[2 * i] != b.frames[2 * j] ||
        a.frames[2 * i + 1] != b.frames[2 * j + 1] ||
        a.identities[i] != b.identities[j])
      break;
  }
  return shared;
}

}  // namespace postflight
