#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "profile/agent/sample_ring.h"
#include "profile/engine/sample_counts.h"
#include "profile/python/code_reader.h"
#include "profile/python/layout.h"
#include "profile/python/stack.h"

namespace postflight {

// A process that has claimed a slot.
struct AgentClaim {
  std::uint32_t slot = 0;
  std::uint32_t claim = 0;          // counts claims, from 1
  pid_t pid = 0;                    // as the process itself sees it
  std::uint64_t pid_namespace = 0;  // 0: not known
  // For a forked process.
  std::uint32_t parent_claim = 0;
  pid_t parent_tid = 0;
};

// One sample by the agent. Valid during the call that delivers it.
struct AgentSample {
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  pid_t tid = 0;
  std::span<const std::uint64_t> words = {};  // pairs: code, instruction
  bool indices = false;  // instructions are indices and may be negative
  std::span<const std::uint32_t> phases = {};
  bool torn = false;
  bool cut = false;
  bool stack_cut = false;  // the native stack is deeper than the copy
  bool no_state = false;   // Python does not know the thread
  bool gil = false;        // see SampleFlags
  bool no_gil = false;
  bool interpreter = false;
  bool library = false;
  bool garbage = false;  // the thread collects garbage
  bool ending = false;   // the interpreter is being finalised
  bool rest = false;     // no sample, but time left at the end of the thread
  std::uint64_t weight_ns = 0;
  std::uint64_t system_ns = 0;
  std::uint64_t cpu_ns = 0;  // of the thread
  std::uint32_t handler_ns = 0;
  std::span<const std::uint64_t> registers = {};  // empty: none copied
  Bytes stack = {};

  // Converts it as if it had been read from outside. The addresses of frames
  // are not known; code and instruction identify them.
  void to(RawStack& stack) const;
};

// The engine's side of sample_ring.h. The profiled program could write anything
// there: an invalid record ends the use of the ring and has no other effect.
class AgentRing {
 public:
  // Maps the slot at `offset` of the arena's file.
  static Result<AgentRing> map(int file, std::size_t offset,
                               std::uint64_t ring_bytes);
  AgentRing(AgentRing&& other) noexcept;
  AgentRing& operator=(AgentRing&&) = delete;
  ~AgentRing();

  AgentState state() const;
  int error() const;
  // Who has claimed it; without the slot.
  AgentClaim claim() const;
  std::uint64_t lost() const;
  // The CPU time of the process, once it has ended by itself.
  std::optional<CpuTime> ended() const;
  // The agent's own thread, as the process sees it; 0: none.
  pid_t clock_thread() const;
  // The phase table in the slot.
  const std::byte* phases() const { return memory_ + kSlotPhasesOffset; }
  // Writes the layout of frames for the agent, which then starts. False if it
  // cannot walk the frames of this version.
  bool begin(const PythonLayout& layout, std::size_t most_frames,
             std::size_t stack_bytes);
  // From the next sample on.
  void set_stack_bytes(std::size_t stack_bytes);
  bool has_begun() const { return begun_; }
  // So much waits to be drained that it may be lost soon.
  bool fills_fast() const;

  using TakeSample = std::function<void(const AgentSample&)>;
  // A code object that samples from here on may refer to.
  using TakeCode = std::function<void(std::span<const MemoryCopy>)>;
  void drain(
      const TakeSample& take,
      const TakeCode& take_new_code = [](std::span<const MemoryCopy>) {});

 private:
  AgentRing() = default;
  RingHeader& header() const;
  // The whole stack of a record with the innermost frames `fresh`; null if it
  // is invalid, empty if it refers to a stack that is not known.
  const std::vector<std::uint64_t>* whole_stack(
      const RingRecord& record, std::span<const std::uint64_t> fresh);
  // Delivers one record; returns its size, or 0 if it is invalid.
  std::uint64_t take_record(std::uint64_t tail, const TakeSample& take,
                            const TakeCode& take_new_code);
  bool take_code(std::span<const std::uint64_t> words, const TakeCode& take);

  std::byte* memory_ = nullptr;
  std::uint64_t ring_bytes_ = 0;
  bool begun_ = false;
  bool broken_ = false;
  std::vector<std::uint64_t> copy_;
  std::vector<MemoryCopy> code_;
  // The previous stack of each thread, which records refer to.
  std::map<std::int32_t, std::vector<std::uint64_t>> stacks_;
  std::size_t stack_words_ = 0;  // of all of them
  std::uint64_t missed_ = 0;     // records that refer to an unknown stack
  bool indices_ = false;
};

}  // namespace postflight
