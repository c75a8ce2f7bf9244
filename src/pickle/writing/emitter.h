#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "pickle/opcode.h"

namespace postflight {

// The opcodes for one kind of text by the width of its length in bytes; kStop
// if there is none.
struct TextOpcodes {
  Opcode one = Opcode::kStop;
  Opcode four = Opcode::kStop;
  Opcode eight = Opcode::kStop;
};

// A pickle being written: PROTO, opcodes and their arguments, and from protocol
// 4 on the frames around them, with CPython's frame boundaries.
class Emitter {
 public:
  Emitter(int protocol, std::uint64_t max_bytes);

  // An error if `bytes` more would exceed the maximum.
  Result<> need_room(std::uint64_t bytes = 0) const {
    if (bytes > max_bytes_ || out_.size() > max_bytes_ - bytes) [[unlikely]]
      return too_long();
    return {};
  }

  void op(Opcode opcode) {
    open_frame();
    out_ += static_cast<char>(opcode);
  }
  template <std::integral T>
  void op(Opcode opcode, T argument) {
    op(opcode);
    append(argument);
  }
  // GLOBAL.
  void lines(Opcode opcode, std::string_view first, std::string_view second);
  // The width of LONG1 for an integer that does not fit 32 bits.
  enum class Wide : std::uint8_t { kAsNeeded, kEight };
  void integer(std::int64_t value, Wide wide);
  // More than 8 bytes, as in a kBigInteger value.
  void big_integer(std::string_view twos_complement);
  void floating(double value);
  // Large text is written outside frames.
  void text(const TextOpcodes& opcodes, std::string_view text);
  // Memoises the last written value; returns its memo index plus one, which is
  // what get() takes.
  std::uint32_t put();
  std::uint32_t memo_size() const { return memo_size_; }
  void get(std::uint32_t index_plus_one);

  // Call before each value: closes a frame that is long enough.
  void boundary() {
    if (frame_ != kNoFrame && out_.size() - frame_ >= kFullFrame)
      close_frame();
  }

  // Writes STOP and returns the pickle.
  std::string finish() &&;

 private:
  static constexpr std::size_t kNoFrame = ~std::size_t{0};
  static constexpr std::size_t kFrameHeader = 9;
  // CPython writes fewer bytes than this without a frame.
  static constexpr std::size_t kShortestFrame = 4;
  static constexpr std::size_t kFrameTarget = 64 << 10;
  static constexpr std::size_t kFullFrame = kFrameHeader + kFrameTarget;

  void open_frame() {
    if (framed_ && frame_ == kNoFrame) {
      frame_ = out_.size();
      out_.append(kFrameHeader, '\0');
    }
  }
  void close_frame();
  tl::unexpected<Error> too_long() const;

  template <std::integral T>
  void append(T number) {
    out_.append(reinterpret_cast<const char*>(&number), sizeof(T));
  }

  std::string out_;
  int protocol_;
  std::uint64_t max_bytes_;
  std::uint32_t memo_size_ = 0;
  bool framed_ = false;
  std::size_t frame_ = kNoFrame;  // offset of the open frame's header
};

}  // namespace postflight
