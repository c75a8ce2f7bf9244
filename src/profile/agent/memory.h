#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/agent/sample_ring.h"

// Part of the agent: the memory that it shares with the engine.

namespace postflight {

// The agent's side of the arena.
class Arena {
 public:
  // Maps the header of the file; false unless it is that of this run. `path`
  // must live as long as the arena.
  bool open(const char* path, std::uint64_t token);
  // Claims and maps a slot for this process; false if there is none. A forked
  // child gives up the slot that it has inherited, which is its parent's: with
  // the parent's claim and the thread that forked, else 0.
  bool claim(std::uint32_t parent_claim, std::int32_t parent_tid);
  // Its header is filled in: the engine may look at it.
  void publish();

  bool is_open() const { return header_ != nullptr; }
  bool is_over() const {
    return header_->stop.load(std::memory_order_relaxed) != 0;
  }
  std::uint64_t interval_ns() const { return header_->interval_ns; }
  std::uint64_t ring_bytes() const { return ring_bytes_; }
  // Null until a slot is claimed.
  RingHeader* ring() const { return reinterpret_cast<RingHeader*>(slot_); }
  std::byte* phases() const { return slot_ + kSlotPhasesOffset; }

  // Space for one record; null if the ring is full, which counts as lost.
  // Threads may reserve at the same time. If the record does not fit before the
  // end of the ring, a filler takes the remaining space there.
  std::byte* reserve_record(std::uint32_t size);

 private:
  const char* path_ = nullptr;
  ArenaHeader* header_ = nullptr;
  std::byte* slot_ = nullptr;
  std::uint32_t number_ = 0;  // of the slot
  std::uint64_t ring_bytes_ = 0;
};

// Writes the phases of a thread to `out`, which has space for kMostPhases, and
// returns their number; 0 without a table. `place` caches the thread's slot.
std::uint16_t copy_phases(const std::byte* table, std::int32_t thread,
                          std::uint32_t& place, std::uint32_t* out);

}  // namespace postflight
