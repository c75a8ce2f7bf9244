#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/agent/sample_ring.h"

// Part of the agent: the memory that it shares with the engine.

namespace postflight {

constexpr std::size_t kMostFolderBytes = 512;

// Writes a positive number without allocating; returns the end of it.
char* write_number(char* to, int number);

// Creates and maps the file <folder>/<pid><suffix> of this process; null on
// failure. The folder's name must be shorter than kMostFolderBytes.
std::byte* map_process_file(const char* folder, const char* suffix,
                            std::size_t size);

// Space for one record; null if the ring is full, which counts as lost. Threads
// may reserve at the same time. If the record does not fit before the end of
// the ring, a filler takes the remaining space there.
std::byte* reserve_record(RingHeader& ring, std::byte* data,
                          std::uint32_t size);

// Writes the phases of a thread to `out`, which has space for kMostPhases, and
// returns their number; 0 without a table. `place` caches the thread's slot.
std::uint16_t copy_phases(const std::byte* table, std::int32_t thread,
                          std::uint32_t& place, std::uint32_t* out);

}  // namespace postflight
