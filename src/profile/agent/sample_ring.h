#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// The shared memory between the agent inside a program and the engine outside:
// a file that both map. Plain structures and no other header of ours: the agent
// is loaded into programs and needs nothing but the C library.

namespace postflight {

constexpr std::uint64_t kRingMagic = 0x31474e4952465000;  // "\0PFRING1"
constexpr std::uint64_t kRingBytes = 4 << 20;
constexpr std::uint32_t kMostRingFrames = 4096;  // of a stack

enum class AgentState : std::uint32_t {
  kStarting = 0,
  kSampling = 1,   // by perf events
  kRefused = 2,    // neither by perf events nor by the clock, see error
  kNotPython = 3,  // nothing for the agent to do
  kClocked = 4,    // by the clock thread, as perf events are refused
};

// Where the frames are; written by the engine, which determines it from
// outside. Offsets as in PythonLayout; the has_ fields say which optional ones
// exist.
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
  std::uint32_t has_is_entry = 0;  // 0: all_entries applies
  std::uint32_t is_entry = 0;
  std::uint32_t all_entries = 0;
  std::uint32_t code_mask_low = 0;  // bits of the code's pointer to clear
  std::uint32_t most_frames = 0;
  std::uint32_t stack_bytes = 0;  // of the native stack to copy; 0: none
  std::uint32_t code_size = 0;    // bytes of a code object that are read
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
  // Incremented when the process calls exec.
  std::atomic<std::uint32_t> generation;
  std::atomic<std::uint32_t> layout_ready;
  RingLayout layout = {};
  // Total bytes written and read; the position is this modulo kRingBytes.
  alignas(64) std::atomic<std::uint64_t> head;
  alignas(64) std::atomic<std::uint64_t> tail;
  alignas(64) std::atomic<std::uint64_t> lost;  // records, as the ring was full
};

constexpr std::size_t kRingDataOffset = 4096;
static_assert(sizeof(RingHeader) <= kRingDataOffset);

// A record: this, then `frames` pairs of words (code, instruction; bit 63 of
// the instruction marks an entry from C), then `phases` words of 4 bytes in
// pairs, then registers and a copy of the stack if `stack_bytes` is not 0.
//
// Outer frames rarely change, so a record has only the innermost frames; the
// `kept` outermost frames of the thread's previous record follow them. Now and
// then a record has the whole stack.
//
// A record of kind 2 precedes that of a sample with a new code object: pieces
// of the program's memory, the code object first, each as address, size and its
// bytes padded to a multiple of 8.
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
  std::uint32_t handler_ns = 0;  // how long taking the sample took
};
static_assert(sizeof(RingRecord) == 40);

constexpr std::uint32_t kRecordOfSample = 1;  // kinds
constexpr std::uint32_t kRecordOfCode = 2;
constexpr std::uint32_t kRecordTorn = 1;  // flags
constexpr std::uint32_t kRecordCut = 2;
constexpr std::uint64_t kEntryBit = std::uint64_t{1} << 63;

// pc, sp and the callee-saved registers, in this order.
constexpr std::size_t kRingRegisters = 8;  // rip rsp rbp rbx r12 r13 r14 r15

}  // namespace postflight
