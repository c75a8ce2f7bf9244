#include "pickle/writing/emitter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace postflight {
namespace {

// A memo index has 32 bits, and each entry takes at least two bytes.
constexpr std::uint64_t kMostBytes = 8ULL << 30;

template <class T>
bool fits(std::int64_t value) {
  return value >= std::numeric_limits<T>::min() &&
         value <= std::numeric_limits<T>::max();
}

}  // namespace

Emitter::Emitter(int protocol, std::uint64_t max_bytes)
    : protocol_(protocol), max_bytes_(std::min(max_bytes, kMostBytes)) {
  op(Opcode::kProto, static_cast<std::uint8_t>(protocol));
  framed_ = protocol >= 4;
}

void Emitter::lines(Opcode opcode, std::string_view first,
                    std::string_view second) {
  op(opcode);
  out_.append(first);
  out_ += '\n';
  out_.append(second);
  out_ += '\n';
}

void Emitter::integer(std::int64_t value, Wide wide) {
  if (fits<std::uint8_t>(value))
    return op(Opcode::kBinInt1, static_cast<std::uint8_t>(value));
  if (fits<std::uint16_t>(value))
    return op(Opcode::kBinInt2, static_cast<std::uint16_t>(value));
  if (fits<std::int32_t>(value))
    return op(Opcode::kBinInt, static_cast<std::int32_t>(value));
  // Redundant sign bytes are omitted.
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? ~value : value);
  const std::size_t bytes =
      wide == Wide::kEight
          ? 8
          : static_cast<std::size_t>(std::bit_width(magnitude)) / 8 + 1;
  op(Opcode::kLong1, static_cast<std::uint8_t>(bytes));
  out_.append(reinterpret_cast<const char*>(&value), bytes);
}

void Emitter::big_integer(std::string_view twos_complement) {
  if (twos_complement.size() < 256)
    op(Opcode::kLong1, static_cast<std::uint8_t>(twos_complement.size()));
  else
    op(Opcode::kLong4, static_cast<std::uint32_t>(twos_complement.size()));
  out_.append(twos_complement);
}

void Emitter::floating(double value) {
  op(Opcode::kBinFloat, __builtin_bswap64(std::bit_cast<std::uint64_t>(value)));
}

void Emitter::text(const TextOpcodes& opcodes, std::string_view text) {
  const bool framed = framed_;
  if (text.size() >= kFrameTarget) {
    close_frame();
    framed_ = false;
  }
  if (opcodes.one != Opcode::kStop && text.size() <= 0xff)
    op(opcodes.one, static_cast<std::uint8_t>(text.size()));
  else if (text.size() <= 0xffffffff)
    op(opcodes.four, static_cast<std::uint32_t>(text.size()));
  else
    op(opcodes.eight, static_cast<std::uint64_t>(text.size()));
  out_.append(text);
  framed_ = framed;
}

std::uint32_t Emitter::put() {
  const std::uint32_t index = memo_size_++;
  if (protocol_ >= 4)
    op(Opcode::kMemoize);
  else if (index <= 0xff)
    op(Opcode::kBinPut, static_cast<std::uint8_t>(index));
  else
    op(Opcode::kLongBinPut, index);
  return memo_size_;
}

void Emitter::get(std::uint32_t index_plus_one) {
  const std::uint32_t index = index_plus_one - 1;
  if (index <= 0xff)
    op(Opcode::kBinGet, static_cast<std::uint8_t>(index));
  else
    op(Opcode::kLongBinGet, index);
}

std::string Emitter::finish() && {
  op(Opcode::kStop);
  close_frame();
  return std::move(out_);
}

void Emitter::close_frame() {
  if (frame_ == kNoFrame)
    return;
  const std::uint64_t size = out_.size() - frame_ - kFrameHeader;
  if (size < kShortestFrame) {
    out_.erase(frame_, kFrameHeader);
  } else {
    out_[frame_] = static_cast<char>(Opcode::kFrame);
    std::memcpy(out_.data() + frame_ + 1, &size, sizeof size);
  }
  frame_ = kNoFrame;
}

tl::unexpected<Error> Emitter::too_long() const {
  return fail(ErrorKind::kRefused,
              "the pickle would be longer than {} bytes; raise the limit if "
              "that is intended",
              max_bytes_);
}

}  // namespace postflight
