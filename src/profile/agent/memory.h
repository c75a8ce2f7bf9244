#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/agent/sample_ring.h"

// Part of the agent: the memory that it shares with the engine.

namespace postflight {

constexpr std::size_t kMostFolderBytes = 512;

// Writes a positive number without asking for memory; the place behind it.
char* write_number(char* to, int number);

// The file <folder>/<pid><suffix> of this process, mapped and filled; null if
// it cannot be. The folder's name is shorter than kMostFolderBytes.
std::byte* map_process_file(const char* folder, const char* suffix,
                            std::size_t size);

// Room for one record, or null, which is counted. Several threads may ask at
// the same time; each gets its own, and a filler takes what is too small before
// the ring's end.
std::byte* reserve_record(RingHeader& ring, std::byte* data,
                          std::uint32_t size);

// Writes the phases that a thread is in to `out`, which has room for all there
// can be; how many. `place` is where it was found last time. No table, no
// phases.
std::uint16_t copy_phases(const std::byte* table, std::int32_t thread,
                          std::uint32_t& place, std::uint32_t* out);

}  // namespace postflight
