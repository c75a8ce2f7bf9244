#pragma once

#include <cstddef>
#include <cstdint>

namespace postflight {

// Which phases the threads of a process are in: shared memory that the process
// writes and a profiler reads, without locks.
//
//   header  "PFPHASE\x02", u32 slots, u32 bytes of names, u32 bytes used,
//           u32 slots ever used
//   slot    u32 tid (0: free), u32 version (odd: being written), u32 depth,
//           u32 phases[kMostPhases], the outermost first, u32 thread's name or
//           0
//   names   at each phase's offset: u16 size of name, u16 size of frame id,
//           u64 owner, both texts; offsets are multiples of 4 and never 0.
//           A phase with an owner, the code object of a generator, lasts only
//           while that is on the stack. A thread's name has neither frame id
//           nor owner.
//
// It is the file <folder>/<pid>.phases, where <folder> is the value of
// POSTFLIGHT_PHASES.
struct PhaseTableLayout {
  static constexpr std::uint32_t kSlots = 512;
  static constexpr std::uint32_t kMostPhases = 28;  // deeper ones are not shown
  static constexpr std::uint32_t kNamesBytes = 256 << 10;
  static constexpr std::size_t kHeaderBytes = 64;
  static constexpr std::size_t kUsedBytesOffset = 16;
  static constexpr std::size_t kUsedSlotsOffset = 20;
  static constexpr std::size_t kSlotBytes = std::size_t{4} * (4 + kMostPhases);
  static constexpr std::size_t kNameOffset = std::size_t{4} * (3 + kMostPhases);
  static constexpr std::size_t kTextOffset = 12;  // in names
  static constexpr std::size_t kNamesOffset =
      kHeaderBytes + kSlots * kSlotBytes;
  static constexpr std::size_t kBytes = kNamesOffset + kNamesBytes;
};

}  // namespace postflight
