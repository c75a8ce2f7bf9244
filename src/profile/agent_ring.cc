#include "profile/agent_ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/descriptor.h"

namespace postflight {
namespace {

constexpr std::size_t kMapped = kRingDataOffset + kRingBytes;

}  // namespace

void AgentSample::to(RawStack& raw) const {
  raw.frames.clear();
  raw.cut = cut;
  raw.state = torn ? StackState::kTorn : StackState::kWhole;
  for (std::size_t i = 0; i < frames; ++i) {
    const std::uint64_t instruction = words[2 * i + 1];
    raw.frames.push_back({.frame = 0,
                          .code = words[2 * i],
                          .instruction = instruction & ~kEntryBit,
                          .entry = (instruction & kEntryBit) != 0});
  }
}

AgentRing::AgentRing(AgentRing&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      broken_(other.broken_),
      copy_(std::move(other.copy_)) {}

AgentRing::~AgentRing() {
  if (memory_ != nullptr)
    ::munmap(memory_, kMapped);
}

Result<AgentRing> AgentRing::open(const std::filesystem::path& path) {
  const Descriptor file(
      ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  if (!file.is_open() || ::fstat(file.number(), &status) != 0)
    return fail_errno(fmt::format("cannot open {}", path.native()));
  if (!S_ISREG(status.st_mode) ||
      static_cast<std::size_t>(status.st_size) != kMapped)
    return fail(ErrorKind::kCorrupt, "{} is no ring", path.native());
  void* const memory = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE,
                              MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED)
    return fail_errno(fmt::format("cannot map {}", path.native()));
  AgentRing ring;
  ring.memory_ = static_cast<std::byte*>(memory);
  if (ring.header().magic != kRingMagic)
    return fail(ErrorKind::kCorrupt, "{} is no ring", path.native());
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

std::uint32_t AgentRing::generation() const {
  return header().generation.load();
}

std::uint64_t AgentRing::lost() const {
  return header().lost.load();
}

std::uint64_t AgentRing::handler_ns() const {
  return header().handler_ns.load();
}

std::uint64_t AgentRing::taken() const {
  return header().taken.load();
}

bool AgentRing::begin(const PythonLayout& layout, std::size_t most_frames,
                      std::size_t stack_bytes) {
  // Before 3.11, frames lay anywhere, and checking each would take too long.
  if (!layout.thread.stack_chunk || !layout.frame.owner ||
      layout.frame.size > 256)
    return false;
  header().layout = {.thread_frame = layout.thread.frame,
                     .thread_chunk = *layout.thread.stack_chunk,
                     .has_top_frame = layout.top_frame ? 1U : 0U,
                     .top_frame = layout.top_frame.value_or(0),
                     .frame_code = layout.frame.code,
                     .frame_previous = layout.frame.previous,
                     .frame_instruction = layout.frame.instruction,
                     .frame_owner = *layout.frame.owner,
                     .frame_size = layout.frame.size,
                     .first_shim_owner = layout.first_shim_owner,
                     .has_is_entry = layout.frame.is_entry ? 1U : 0U,
                     .is_entry = layout.frame.is_entry.value_or(0),
                     .code_mask_low = layout.tagged_code ? 7U : 0U,
                     .most_frames = static_cast<std::uint32_t>(most_frames),
                     .stack_bytes = static_cast<std::uint32_t>(stack_bytes)};
  header().layout_ready.store(1);
  return true;
}

std::uint64_t AgentRing::take_record(
    std::uint64_t tail, const std::function<void(const AgentSample&)>& take) {
  const std::uint64_t left = kRingBytes - tail % kRingBytes;
  std::byte* const at = memory_ + kRingDataOffset + tail % kRingBytes;
  const std::uint32_t size =
      reinterpret_cast<RingRecord*>(at)->size.load(std::memory_order_acquire);
  if (size % 8 != 0 || size > left)
    return 0;
  // Copied before it is looked at, so that it cannot change meanwhile. A filler
  // may be shorter than a record.
  copy_.resize(std::max<std::size_t>(size, sizeof(RingRecord)) / 8);
  std::memcpy(copy_.data(), at, size);
  std::uint32_t kind = 0;
  std::memcpy(&kind, reinterpret_cast<const std::byte*>(copy_.data()) + 4, 4);
  if (kind == 0)
    return size;
  if (size < sizeof(RingRecord))
    return 0;
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
  AgentSample sample = {.time_ns = record->time_ns,
                        .tid = record->tid,
                        .frames = record->frames,
                        .words = {rest, frame_words},
                        .torn = (record->flags & kRecordTorn) != 0,
                        .cut = (record->flags & kRecordCut) != 0};
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

void AgentRing::drain(const std::function<void(const AgentSample&)>& take) {
  if (broken_)
    return;
  std::uint64_t tail = header().tail.load();
  const std::uint64_t head = header().head.load();
  if (tail % 8 != 0 || head - tail > kRingBytes) {
    broken_ = true;
    return;
  }
  while (tail < head) {
    std::byte* const at = memory_ + kRingDataOffset + tail % kRingBytes;
    if (reinterpret_cast<RingRecord*>(at)->size.load(
            std::memory_order_acquire) == 0)
      return;  // being written
    const std::uint64_t size = take_record(tail, take);
    if (size == 0 || size > head - tail) {
      broken_ = true;
      return;
    }
    // The next to write here finds zeros, so that its size shows when it is
    // done.
    std::memset(at, 0, size);
    tail += size;
    header().tail.store(tail);
  }
}

}  // namespace postflight
