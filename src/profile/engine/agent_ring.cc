#include "profile/engine/agent_ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <sys/mman.h>

namespace postflight {
namespace {

// A thousand threads with the deepest stacks. Beyond that all are dropped, and
// agents send whole stacks again now and then.
constexpr std::size_t kMostStackWords = std::size_t{2'000} * kMostRingFrames;

}  // namespace

void AgentSample::to(RawStack& raw) const {
  raw.frames.clear();
  raw.cut = cut;
  raw.state = torn ? StackState::kTorn : StackState::kWhole;
  for (std::size_t i = 0; 2 * i + 1 < words.size(); ++i) {
    const bool entry = (words[2 * i + 1] & kEntryBit) != 0;
    std::uint64_t instruction = words[2 * i + 1] & ~kEntryBit;
    if (indices)
      instruction = static_cast<std::uint64_t>(
          static_cast<std::int32_t>(static_cast<std::uint32_t>(instruction)));
    raw.frames.push_back({.frame = 0,
                          .code = words[2 * i],
                          .instruction = instruction,
                          .entry = entry});
  }
}

AgentRing::AgentRing(AgentRing&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      ring_bytes_(other.ring_bytes_),
      begun_(other.begun_),
      broken_(other.broken_),
      copy_(std::move(other.copy_)),
      stacks_(std::move(other.stacks_)),
      stack_words_(other.stack_words_),
      missed_(other.missed_),
      indices_(other.indices_) {}

AgentRing::~AgentRing() {
  if (memory_ != nullptr)
    ::munmap(memory_, kRingDataOffset + ring_bytes_);
}

Result<AgentRing> AgentRing::map(int file, std::size_t offset,
                                 std::uint64_t ring_bytes) {
  void* const memory =
      ::mmap(nullptr, kRingDataOffset + ring_bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED, file, static_cast<off_t>(offset));
  if (memory == MAP_FAILED)
    return fail_errno("cannot map a ring of samples");
  AgentRing ring;
  ring.memory_ = static_cast<std::byte*>(memory);
  ring.ring_bytes_ = ring_bytes;
  return ring;
}

RingHeader& AgentRing::header() const {
  return *reinterpret_cast<RingHeader*>(memory_);
}

AgentState AgentRing::state() const {
  return broken_ ? AgentState::kNotPython
                 : static_cast<AgentState>(header().state.load());
}

int AgentRing::error() const {
  return header().error;
}

AgentClaim AgentRing::claim() const {
  const RingHeader& from = header();
  return {.claim = from.claim,
          .pid = from.pid,
          .pid_namespace = from.pid_namespace,
          .parent_claim = from.parent_claim,
          .parent_tid = from.parent_tid};
}

std::optional<CpuTime> AgentRing::ended() const {
  if (header().ended.load(std::memory_order_acquire) == 0)
    return std::nullopt;
  return CpuTime{.user_ns = header().user_ns, .system_ns = header().system_ns};
}

pid_t AgentRing::clock_thread() const {
  return header().clock_tid.load();
}

bool AgentRing::fills_fast() const {
  return header().head.load() - header().tail.load() > ring_bytes_ / 8;
}

void AgentRing::set_stack_bytes(std::size_t stack_bytes) {
  // The agent reads it with each sample; either value will do.
  header().layout.stack_bytes = static_cast<std::uint32_t>(stack_bytes);
}

std::uint64_t AgentRing::lost() const {
  return header().lost.load() + missed_;
}

bool AgentRing::begin(const PythonLayout& layout, std::size_t most_frames,
                      std::size_t stack_bytes) {
  if (layout.frame.size > 256)
    return false;
  indices_ = !layout.code.instructions.has_value();
  begun_ = true;
  header().layout = {.thread_frame = layout.thread.frame,
                     .thread_id = layout.thread.thread_id,
                     .thread_interpreter = layout.thread.interpreter,
                     .has_collecting = layout.interpreter.collecting ? 1U : 0U,
                     .collecting = layout.interpreter.collecting.value_or(0),
                     .has_top_frame = layout.top_frame ? 1U : 0U,
                     .top_frame = layout.top_frame.value_or(0),
                     .frame_code = layout.frame.code,
                     .frame_previous = layout.frame.previous,
                     .frame_instruction = layout.frame.instruction,
                     .has_index = indices_ ? 1U : 0U,
                     .has_owner = layout.frame.owner ? 1U : 0U,
                     .frame_owner = layout.frame.owner.value_or(0),
                     .frame_size = layout.frame.size,
                     .first_shim_owner = layout.first_shim_owner,
                     .has_is_entry = layout.frame.is_entry ? 1U : 0U,
                     .is_entry = layout.frame.is_entry.value_or(0),
                     .all_entries = indices_ ? 1U : 0U,
                     .code_mask_low = layout.tagged_code ? 7U : 0U,
                     .most_frames = static_cast<std::uint32_t>(most_frames),
                     .stack_bytes = static_cast<std::uint32_t>(stack_bytes),
                     .code_size = layout.code.size(),
                     .code_name = layout.code.name,
                     .code_file = layout.code.filename,
                     .code_first_line = layout.code.first_line,
                     .code_line_table = layout.code.line_table,
                     .ascii_header = layout.ascii_header,
                     .compact_header = layout.compact_header};
  header().layout_ready.store(1);
  return true;
}

const std::vector<std::uint64_t>* AgentRing::whole_stack(
    const RingRecord& record, std::span<const std::uint64_t> fresh) {
  if (std::uint64_t{record.kept} + record.frames > kMostRingFrames)
    return nullptr;
  if (stack_words_ > kMostStackWords) {
    stacks_.clear();
    stack_words_ = 0;
  }
  std::vector<std::uint64_t>& stack = stacks_[record.tid];
  const std::size_t kept = std::size_t{2} * record.kept;
  stack_words_ -= stack.size();
  if (kept > stack.size()) {
    ++missed_;
    stack.clear();
    return &stack;
  }
  stack.erase(stack.begin(), stack.end() - static_cast<std::ptrdiff_t>(kept));
  stack.insert(stack.begin(), fresh.begin(), fresh.end());
  stack_words_ += stack.size();
  return &stack;
}

bool AgentRing::take_code(std::span<const std::uint64_t> words,
                          const TakeCode& take) {
  code_.clear();
  while (!words.empty()) {
    if (words.size() < 2 || words[1] > 8 * (words.size() - 2))
      return false;
    const std::uint64_t size = words[1];
    code_.push_back({words[0], std::as_bytes(words.subspan(2)).first(size)});
    words = words.subspan(2 + (size + 7) / 8);
  }
  take(code_);
  return true;
}

std::uint64_t AgentRing::take_record(std::uint64_t tail, const TakeSample& take,
                                     const TakeCode& take_new_code) {
  const std::uint64_t left = ring_bytes_ - tail % ring_bytes_;
  std::byte* const at = memory_ + kRingDataOffset + tail % ring_bytes_;
  const std::uint32_t size =
      reinterpret_cast<RingRecord*>(at)->size.load(std::memory_order_acquire);
  if (size % 8 != 0 || size > left)
    return 0;
  // Copied before it is checked, so that it cannot change afterwards. A filler
  // may be shorter than a record.
  copy_.resize(std::max<std::size_t>(size, sizeof(RingRecord)) / 8);
  std::memcpy(copy_.data(), at, size);
  std::uint32_t kind = 0;
  std::memcpy(&kind, reinterpret_cast<const std::byte*>(copy_.data()) + 4, 4);
  if (kind == 0)
    return size;
  if (size < sizeof(RingRecord))
    return 0;
  if (kind == kRecordOfCode)
    return take_code(std::span(copy_).subspan(sizeof(RingRecord) / 8),
                     take_new_code)
               ? size
               : 0;
  const auto* const record = reinterpret_cast<const RingRecord*>(copy_.data());
  const std::size_t frame_words = std::size_t{2} * record->frames;
  const std::size_t phase_words = (std::size_t{record->phases} + 1) / 2;
  const std::size_t stack_words = record->stack_bytes / 8;
  const std::size_t words =
      sizeof(RingRecord) / 8 + frame_words + phase_words +
      (stack_words == 0 ? 0 : kRingRegisters + stack_words);
  if (words * 8 > size)
    return 0;
  const std::uint64_t* rest = copy_.data() + sizeof(RingRecord) / 8;
  const auto* const stack = whole_stack(*record, {rest, frame_words});
  if (stack == nullptr)
    return 0;
  if (stack->empty() && record->kept != 0)
    return size;
  AgentSample sample = {
      .time_ns = record->time_ns,
      .tid = record->tid,
      .words = *stack,
      .indices = indices_,
      .torn = (record->flags & kRecordTorn) != 0,
      .cut = (record->flags & kRecordCut) != 0,
      .stack_cut = (record->flags & kRecordStackCut) != 0,
      .no_state = (record->flags & kRecordNoState) != 0,
      .gil = (record->flags & kRecordGil) != 0,
      .no_gil = (record->flags & kRecordNoGil) != 0,
      .interpreter = (record->flags & kRecordInterpreter) != 0,
      .library = (record->flags & kRecordLibrary) != 0,
      .garbage = (record->flags & kRecordGarbage) != 0,
      .ending = (record->flags & kRecordEnding) != 0,
      .rest = (record->flags & kRecordRest) != 0,
      .weight_ns = record->weight_ns,
      .system_ns = record->system_ns,
      .cpu_ns = record->cpu_ns,
      .handler_ns = record->handler_ns};
  rest += frame_words;
  sample.phases = {reinterpret_cast<const std::uint32_t*>(rest),
                   record->phases};
  rest += phase_words;
  if (stack_words != 0) {
    sample.registers = {rest, kRingRegisters};
    sample.stack = std::as_bytes(std::span(rest + kRingRegisters, stack_words));
  }
  take(sample);
  return size;
}

void AgentRing::drain(const TakeSample& take, const TakeCode& take_new_code) {
  if (broken_)
    return;
  std::uint64_t tail = header().tail.load();
  const std::uint64_t head = header().head.load();
  if (tail % 8 != 0 || head - tail > ring_bytes_) {
    broken_ = true;
    return;
  }
  while (tail < head) {
    std::byte* const at = memory_ + kRingDataOffset + tail % ring_bytes_;
    if (reinterpret_cast<RingRecord*>(at)->size.load(
            std::memory_order_acquire) == 0)
      return;  // being written
    const std::uint64_t size = take_record(tail, take, take_new_code);
    if (size == 0 || size > head - tail) {
      broken_ = true;
      return;
    }
    // Zeroed, so that the size of the next record here appears only when it is
    // complete.
    std::memset(at, 0, size);
    tail += size;
    header().tail.store(tail);
  }
}

}  // namespace postflight
