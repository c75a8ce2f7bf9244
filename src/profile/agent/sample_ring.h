#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profile/agent/phase_layout.h"

// The shared memory between the agents inside programs and the engine outside:
// one file that all of them map. Plain structures and no other header of ours
// than phase_layout.h: the agent is loaded into programs and needs nothing but
// the C library.
//
//   ArenaHeader
//   slots, each: RingHeader, a phase table (phase_layout.h), and a ring of
//   records
//
// A slot belongs to one process and one program in it. The engine keeps a few
// slots allocated and zeroed ahead of time, so that a process that begins (also
// by fork) only has to claim one: nothing is created, and no page is cleared,
// inside the program.

namespace postflight {

constexpr std::uint64_t kArenaMagic = 0x32474e4952465000;  // "\0PFRING2"
constexpr std::uint32_t kMostSlots = 1024;
// With copies of native stacks, a ring takes more.
constexpr std::uint64_t kRingBytes = 512 << 10;
constexpr std::uint64_t kNativeRingBytes = 4 << 20;
constexpr std::uint32_t kMostStackBytes = 512 << 10;
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
  std::uint32_t thread_id = 0;  // what pthread_self() returns
  std::uint32_t thread_interpreter = 0;
  std::uint32_t has_collecting = 0;
  std::uint32_t collecting = 0;  // of the interpreter
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

// What a slot is used for. The engine makes slots ready and frees them, a
// process claims them, or makes one if none is ready.
enum class SlotUse : std::uint32_t {
  kAbsent = 0,  // not allocated
  kReady = 1,
  kClaimed = 2,  // the rest of its header is valid
  kTaken = 3,    // about to be claimed, or being allocated
};

struct ArenaHeader {
  std::uint64_t magic = kArenaMagic;
  std::uint64_t token = 0;  // of this run, as in the environment
  std::uint64_t ring_bytes = kRingBytes;
  std::uint64_t interval_ns = 0;
  std::atomic<std::uint32_t> stop;  // the profile is over
  std::atomic<std::uint32_t> claims;
  std::atomic<std::uint32_t> uses[kMostSlots];  // SlotUse
};
constexpr std::size_t kArenaHeaderBytes = 8192;
static_assert(sizeof(ArenaHeader) <= kArenaHeaderBytes);
// The Python module of phases finds its slot by these.
static_assert(offsetof(ArenaHeader, token) == 8);
static_assert(offsetof(ArenaHeader, ring_bytes) == 16);
static_assert(offsetof(ArenaHeader, uses) == 40);

struct RingHeader {
  std::atomic<std::uint32_t> state;
  std::int32_t error = 0;
  // Counts the claims of all slots, from 1.
  std::uint32_t claim = 0;
  // As the process itself sees them; its namespace as the inode of
  // /proc/self/ns/pid, 0 if that is not known.
  std::int32_t pid = 0;
  std::uint64_t pid_namespace = 0;
  // For a forked process: its parent's claim, and the thread that forked.
  std::uint32_t parent_claim = 0;
  std::int32_t parent_tid = 0;
  // The agent's own thread, if it has one; not part of the program.
  std::atomic<std::int32_t> clock_tid;
  std::atomic<std::uint32_t> layout_ready;
  // The process has ended by itself, or calls exec, with these CPU times.
  std::atomic<std::uint32_t> ended;
  std::uint64_t user_ns = 0;
  std::uint64_t system_ns = 0;
  RingLayout layout = {};
  // Total bytes written and read; the position is this modulo the ring's size.
  alignas(64) std::atomic<std::uint64_t> head;
  alignas(64) std::atomic<std::uint64_t> tail;
  alignas(64) std::atomic<std::uint64_t> lost;  // records, as the ring was full
};

static_assert(offsetof(RingHeader, claim) == 8);
static_assert(offsetof(RingHeader, pid) == 12);
static_assert(offsetof(RingHeader, pid_namespace) == 16);
constexpr std::size_t kSlotPhasesOffset = 4096;
static_assert(sizeof(RingHeader) <= kSlotPhasesOffset);
constexpr std::size_t kRingDataOffset =
    (kSlotPhasesOffset + PhaseTableLayout::kBytes + 4095) / 4096 * 4096;

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
  std::uint64_t weight_ns = 0;   // CPU time that it stands for
  std::uint64_t system_ns = 0;   // how much of that was in the kernel
  std::uint64_t cpu_ns = 0;      // the CPU time of the thread
};
static_assert(sizeof(RingRecord) == 64);

constexpr std::uint32_t kRecordOfSample = 1;  // kinds
constexpr std::uint32_t kRecordOfCode = 2;
constexpr std::uint32_t kRecordTorn = 1;  // flags
constexpr std::uint32_t kRecordCut = 2;
constexpr std::uint32_t kRecordStackCut = 4;  // more native stack than copied
constexpr std::uint32_t kRecordNoState = 8;   // Python does not know the thread
// No sample, but what was left when the thread ended; the stack is its last.
constexpr std::uint32_t kRecordRest = 16;
constexpr std::uint32_t kRecordGil = 32;       // the thread holds the GIL
constexpr std::uint32_t kRecordNoGil = 64;     // or does not; else not known
constexpr std::uint32_t kRecordGarbage = 128;  // it collects garbage
// Its instruction is one of the interpreter's, or not; else not known.
constexpr std::uint32_t kRecordInterpreter = 256;
constexpr std::uint32_t kRecordLibrary = 512;
constexpr std::uint32_t kRecordEnding = 1024;  // Python is being finalised
constexpr std::uint64_t kEntryBit = std::uint64_t{1} << 63;

// pc, sp and the callee-saved registers, in this order.
constexpr std::size_t kRingRegisters = 8;  // rip rsp rbp rbx r12 r13 r14 r15

}  // namespace postflight
