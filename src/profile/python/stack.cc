#include "profile/python/stack.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"

namespace postflight {
namespace {

// Two copies must agree; programs that call all the time get a few more tries.
constexpr int kMostCopies = 6;
// A chunk is 16 kB unless a single frame needs more; 4,096 frames of average
// size take fifty chunks.
constexpr std::size_t kMostChunks = 512;
constexpr std::size_t kMostChunkBytes = 4 << 20;
// Fields previous, size and top, before the frames.
constexpr std::size_t kChunkHeader = 24;

std::uint64_t word(const std::byte* bytes, std::size_t offset) {
  return load_little_endian<std::uint64_t>(bytes + offset);
}

// Whether both have the same calls; the innermost frame may be at another
// instruction.
bool agree(std::span<const RawFrame> a, std::span<const RawFrame> b) {
  if (a.size() != b.size())
    return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!a[i].same_place(b[i]) ||
        (i != 0 && a[i].instruction != b[i].instruction))
      return false;
  return true;
}

}  // namespace

bool has_python_frames(const Memory& memory, const PythonLayout& layout,
                       std::uint64_t thread) {
  auto frame = memory.load<std::uint64_t>(thread + layout.thread.frame);
  if (frame && *frame != 0 && layout.top_frame)
    frame = memory.load<std::uint64_t>(*frame + *layout.top_frame);
  return frame.value_or(0) != 0;
}

PythonStackReader::PythonStackReader(const Memory& memory,
                                     const PythonLayout& layout,
                                     std::uint64_t thread,
                                     std::size_t most_frames)
    : memory_(memory),
      layout_(layout),
      thread_(thread),
      most_frames_(most_frames) {}

const RawStack& PythonStackReader::read() {
  bool have_other = false;
  bool agreed = false;
  for (int copy = 0; copy < kMostCopies && !agreed; ++copy) {
    std::swap(stack_, other_);
    if (!read_once(stack_)) {
      have_other = false;
      stack_.frames.clear();
      continue;
    }
    // If this copy was steady and the other one agrees, that was steady, too.
    agreed = have_other && steady_ && agree(stack_.frames, other_.frames);
    if (!agreed && have_other && copy + 1 == kMostCopies) {
      // The outer frames that both have in common did not change; the rest is
      // a mixture of two moments.
      const auto differ = std::mismatch(
          stack_.frames.rbegin(), stack_.frames.rend(), other_.frames.rbegin(),
          other_.frames.rend(),
          [](const RawFrame& a, const RawFrame& b) { return a.same_place(b); });
      stack_.frames.erase(stack_.frames.begin(), differ.first.base());
      stack_.state = StackState::kTorn;
      return stack_;
    }
    have_other = true;
  }
  stack_.state = agreed ? StackState::kWhole : StackState::kUnreadable;
  return stack_;
}

const RawStack& PythonStackReader::read_still() {
  if (read_once(stack_)) {
    stack_.state = StackState::kWhole;
  } else {
    stack_.frames.clear();
    stack_.state = StackState::kUnreadable;
  }
  return stack_;
}

bool PythonStackReader::read_once(RawStack& stack) {
  stack.frames.clear();
  stack.cut = false;
  const auto chunk_field = layout_.thread.stack_chunk;
  std::array<std::byte, kThreadBytes> state;
  const std::size_t size =
      std::max({layout_.thread.frame + 8, layout_.thread.interpreter + 8,
                chunk_field.value_or(0) + 8});
  if (size > state.size() ||
      !memory_.read(thread_, std::span(state).first(size)))
    return false;
  std::uint64_t top = word(state.data(), layout_.thread.frame);
  steady_ = true;
  if (top == 0)
    return true;
  if (chunk_field) {
    if (!refresh_chunks(word(state.data(), *chunk_field)))
      return false;
  }
  const std::uint64_t cframe = layout_.top_frame ? top + *layout_.top_frame : 0;
  if (copy_regions(cframe, top) && walk(top, stack))
    return true;
  forget();
  return false;
}

// Keeps the list of chunks if the topmost is the same, as those below cannot
// have changed then.
bool PythonStackReader::refresh_chunks(std::uint64_t chunk) {
  if (chunk == 0) {
    chunks_.clear();
    return true;
  }
  if (chunks_.empty() || chunks_.front().address != chunk) {
    const auto known = std::ranges::find(chunks_, chunk, &Region::address);
    std::vector<Region> fresh;
    for (std::uint64_t at = chunk; at != 0 && known == chunks_.end();) {
      std::array<std::byte, kChunkHeader> header;
      if (fresh.size() == kMostChunks || !memory_.read(at, header))
        return false;
      const std::uint64_t size = word(header.data(), 8);
      if (size < kChunkHeader || size > kMostChunkBytes)
        return false;
      fresh.push_back({at, size, 0, false});
      at = word(header.data(), 0);
    }
    if (known == chunks_.end())
      chunks_ = std::move(fresh);
    else
      chunks_.erase(chunks_.begin(), known);
  }
  return true;
}

bool PythonStackReader::copy_regions(std::uint64_t cframe, std::uint64_t& top) {
  std::size_t total = 0;
  for (auto* const regions : {&chunks_, &scattered_})
    for (Region& region : *regions) {
      region.offset = total;
      region.filled = false;
      total += region.size;
    }
  if (buffer_.size() < total)
    buffer_.resize(total);
  // The top is read first, and again after the chunks, to notice calls and
  // returns meanwhile.
  const std::uint64_t top_address =
      cframe != 0 ? cframe : thread_ + layout_.thread.frame;
  std::uint64_t top_after = 0;
  pieces_.clear();
  pieces_.push_back({top_address, std::as_writable_bytes(std::span(&top, 1))});
  const auto add = [this](const Region& region) {
    pieces_.push_back({region.address,
                       std::span(buffer_).subspan(region.offset, region.size)});
  };
  std::ranges::for_each(chunks_, add);
  pieces_.push_back(
      {top_address, std::as_writable_bytes(std::span(&top_after, 1))});
  std::ranges::for_each(scattered_, add);
  const std::size_t done = memory_.read(pieces_);
  if (done < 2 + chunks_.size())
    return false;
  steady_ = top == top_after;
  for (Region& chunk : chunks_)
    chunk.filled = true;
  for (std::size_t i = 0; i + 2 + chunks_.size() < done; ++i)
    scattered_[i].filled = true;
  return true;
}

const std::byte* PythonStackReader::frame_bytes(std::uint64_t address) {
  const std::size_t size = layout_.frame.size;
  for (const Region& chunk : chunks_)
    if (address >= chunk.address + kChunkHeader &&
        address - chunk.address + size <= chunk.size)
      return buffer_.data() + chunk.offset + (address - chunk.address);
  met_.push_back(address);
  // Stacks change at their top, so the next frame is mostly the next one that
  // is known.
  auto known = scattered_.begin();
  if (next_scattered_ < scattered_.size() &&
      scattered_[next_scattered_].address == address)
    known += static_cast<std::ptrdiff_t>(next_scattered_);
  else
    known = std::ranges::find(scattered_, address, &Region::address);
  if (known != scattered_.end() && known->filled) {
    next_scattered_ = static_cast<std::size_t>(known - scattered_.begin()) + 1;
    return buffer_.data() + known->offset;
  }
  scratch_.resize(size);
  return memory_.read(address, scratch_) ? scratch_.data() : nullptr;
}

bool PythonStackReader::walk(std::uint64_t frame, RawStack& stack) {
  met_.clear();
  next_scattered_ = 0;
  // Shim frames, which mark entries from C, do not count.
  for (std::size_t steps = 0; frame != 0; ++steps) {
    if (stack.frames.size() == most_frames_) {
      stack.cut = true;
      break;
    }
    if (frame % 8 != 0 || steps > 2 * most_frames_)
      return false;
    const std::byte* const bytes = frame_bytes(frame);
    if (bytes == nullptr)
      return false;
    const PythonLayout::Frame& at = layout_.frame;
    const bool shim =
        at.owner && std::to_integer<std::uint8_t>(bytes[*at.owner]) >=
                        layout_.first_shim_owner;
    if (shim) {
      if (!stack.frames.empty())
        stack.frames.back().entry = true;
    } else {
      RawFrame& raw = stack.frames.emplace_back();
      raw.frame = frame;
      raw.code = word(bytes, at.code);
      if (layout_.tagged_code)
        raw.code &= ~std::uint64_t{7};
      if (layout_.code.instructions)
        raw.instruction = word(bytes, at.instruction);
      else
        raw.instruction = static_cast<std::uint64_t>(
            load_little_endian<std::int32_t>(bytes + at.instruction));
      // Before 3.11 every call went through C.
      raw.entry = at.is_entry ? bytes[*at.is_entry] != std::byte{0}
                              : !layout_.code.instructions.has_value();
    }
    const std::uint64_t previous = word(bytes, at.previous);
    if (previous == frame)
      return false;
    frame = previous;
  }
  scattered_.clear();
  for (const std::uint64_t address : met_)
    scattered_.push_back({address, layout_.frame.size, 0, false});
  return true;
}

void PythonStackReader::forget() {
  chunks_.clear();
  scattered_.clear();
}

}  // namespace postflight
