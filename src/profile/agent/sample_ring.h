#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// What the agent inside a program and the engine beside it share: a file that
// both have mapped. Plain structures, and no other header of ours: the agent
// is loaded into programs and needs nothing but the C library.

namespace postflight {

constexpr std::uint64_t kRingMagic = 0x31474e4952465000;  // "\0PFRING1"
constexpr std::uint64_t kRingBytes = 4 << 20;
constexpr std::uint32_t kMostRingFrames = 4096;  // of a stack

enum class AgentState : std::uint32_t {
  kStarting = 0,
  kSampling = 1,   // by perf events
  kRefused = 2,    // neither is possible; the error says why
  kNotPython = 3,  // nothing for the agent to do
  kClocked = 4,    // by a thread with a clock, as perf events may not be opened
};

// Where the frames are, by the engine, which finds it out from outside.
// Offsets as in PythonLayout; has_ fields for those that may be missing.
struct RingLayout {
  std::uint32_t thread_frame = 0;
  std::uint32_t has_top_frame = 0;
  std::uint32_t top_frame = 0;
  std::uint32_t frame_code = 0;
  std::uint32_t frame_previous = 0;
  std::uint32_t frame_instruction = 0;  // a word, or an index of 4 bytes
  std::uint32_t has_index = 0;
  std::uint32_t has_owner = 0;
  std::uint32_t frame_owner = 0;
  std::uint32_t frame_size = 0;
  std::uint32_t first_shim_owner = 0;
  std::uint32_t has_is_entry = 0;  // without: as all_entries says
  std::uint32_t is_entry = 0;
  std::uint32_t all_entries = 0;
  std::uint32_t code_mask_low = 0;  // bits of the code's pointer to clear
  std::uint32_t most_frames = 0;
  std::uint32_t stack_bytes = 0;  // of the C stack to copy; 0: none
  std::uint32_t code_size = 0;    // of a code object, as far as it is read
  std::uint32_t code_name = 0;
  std::uint32_t code_file = 0;
  std::uint32_t code_first_line = 0;
  std::uint32_t code_line_table = 0;
  std::uint32_t ascii_header = 0;
  std::uint32_t compact_header = 0;
};

struct RingHeader {
  std::uint64_t magic = kRingMagic;
  std::atomic<std::uint32_t> state;
  std::int32_t error = 0;
  // Goes up when the process becomes another program.
  std::atomic<std::uint32_t> generation;
  std::atomic<std::uint32_t> layout_ready;
  RingLayout layout = {};
  // Bytes ever written and ever read; the place is the rest by kRingBytes.
  alignas(64) std::atomic<std::uint64_t> head;
  alignas(64) std::atomic<std::uint64_t> tail;
  alignas(64) std::atomic<std::uint64_t> lost;  // no room
};

constexpr std::size_t kRingDataOffset = 4096;
static_assert(sizeof(RingHeader) <= kRingDataOffset);

// A record: this, then `frames` pairs of words (code, instruction; bit 63 of
// the instruction marks an entry from C), then `phases` words of 4 bytes in
// pairs, then registers and a copy of the stack if `stack_bytes` is not 0.
//
// Outer frames rarely change: of the thread's stack in its record before, the
// `kept` outermost frames follow those that are given. Now and then a record
// has them all.
//
// A record of kind 2 comes before that of a sample whose code is new: pieces of
// the program's memory, beginning with the code object, each as address, size
// and its bytes up to a multiple of 8.
struct RingRecord {
  std::atomic<std::uint32_t> size;  // a multiple of 8, written last; 0: not yet
  std::uint32_t kind = 0;           // 0: a filler; 1: a sample; 2: a code
  std::uint64_t time_ns = 0;        // CLOCK_MONOTONIC
  std::int32_t tid = 0;
  std::uint16_t frames = 0;
  std::uint16_t phases = 0;
  std::uint32_t flags = 0;
  std::uint32_t stack_bytes = 0;
  std::uint32_t kept = 0;
  std::uint32_t handler_ns = 0;  // that it took to take the sample
};
static_assert(sizeof(RingRecord) == 40);

constexpr std::uint32_t kRecordOfSample = 1;  // kinds
constexpr std::uint32_t kRecordOfCode = 2;
constexpr std::uint32_t kRecordTorn = 1;  // flags
constexpr std::uint32_t kRecordCut = 2;
constexpr std::uint64_t kEntryBit = std::uint64_t{1} << 63;

// pc, sp, and what calls have to preserve, in this order.
constexpr std::size_t kRingRegisters = 8;  // rip rsp rbp rbx r12 r13 r14 r15

}  // namespace postflight
