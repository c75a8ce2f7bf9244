#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "pickle/opcode.h"

namespace postflight {

// An entry of a pickle's memo.
struct Remembered {
  enum Kind : std::uint8_t { kText, kFrame, kNeither };
  static constexpr std::uint8_t kNotLookedUp = 0xff;
  static constexpr std::uint32_t kNotInterned = ~std::uint32_t{0};

  Kind kind = kNeither;
  std::uint8_t field = kNotLookedUp;  // EntryField, for a text used as a key
  std::uint8_t state = kNotLookedUp;  // State, for a text used as one
  std::uint32_t id = kNotInterned;    // TextId or FrameId
  std::string_view text;
};

// Reads a pickle as torch's pickler writes it, opcode by opcode, and keeps its
// memo. Functions that return bool return false if the bytes are anything else.
class RecorderCursor {
 public:
  explicit RecorderCursor(Bytes bytes)
      : next_(reinterpret_cast<const unsigned char*>(bytes.data())),
        end_(next_ + bytes.size()) {}

  const unsigned char* place() const { return next_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }
  void skip(std::size_t count) { next_ += count; }
  void go_back(const unsigned char* place) { next_ = place; }
  bool has(std::size_t count) const { return left() >= count; }
  bool at(Opcode opcode) const {
    return next_ != end_ && *next_ == static_cast<unsigned char>(opcode);
  }
  bool take(Opcode opcode) {
    if (!at(opcode))
      return false;
    ++next_;
    return true;
  }
  template <std::integral T>
  T load(std::ptrdiff_t offset) const {
    return load_little_endian<T>(
        reinterpret_cast<const std::byte*>(next_ + offset));
  }

  bool read_version(unsigned char& version) {
    if (!has(1))
      return false;
    version = *next_++;
    return true;
  }
  bool read_integer(std::int64_t& number, std::int64_t if_none);
  bool read_flag(bool& flag) {
    flag = at(Opcode::kNewTrue);
    return take(Opcode::kNewTrue) || take(Opcode::kNewFalse);
  }
  // -1 if the number is not finite.
  bool read_duration(double& milliseconds);
  // Valid until the next call; nullptr if there is no text.
  Remembered* read_text() {
    Remembered* const found = recall();
    if (found == nullptr) [[unlikely]]
      return read_new_text();
    return found->kind == Remembered::kText ? found : nullptr;
  }

  std::size_t memo_size() const { return memo_.size(); }
  // Stores `what` in the memo if a BINPUT follows; false if its index is not
  // the next one.
  bool remember(const Remembered& what) {
    if (!at(Opcode::kBinPut) && !at(Opcode::kLongBinPut)) [[likely]]
      return true;
    return put(what);
  }
  Remembered* recall() {
    std::size_t index = memo_.size();
    if (at(Opcode::kBinGet) && has(2)) [[likely]] {
      index = next_[1];
      next_ += 2;
    } else if (at(Opcode::kLongBinGet) && has(5)) {
      index = load<std::uint32_t>(1);
      next_ += 5;
    }
    return index < memo_.size() ? &memo_[index] : nullptr;
  }

 private:
  bool put(const Remembered& what);
  Remembered* read_new_text();

  const unsigned char* next_;
  const unsigned char* end_;
  std::vector<Remembered> memo_;
  Remembered passing_;  // the latest text that was not memoised
};

inline bool RecorderCursor::read_integer(std::int64_t& number,
                                         std::int64_t if_none) {
  if (!has(1))
    return false;
  switch (static_cast<Opcode>(*next_)) {
    case Opcode::kBinInt1:
      if (!has(2))
        return false;
      number = next_[1];
      next_ += 2;
      return true;
    case Opcode::kBinInt2:
      if (!has(3))
        return false;
      number = load<std::uint16_t>(1);
      next_ += 3;
      return true;
    case Opcode::kBinInt:
      if (!has(5))
        return false;
      number = load<std::int32_t>(1);
      next_ += 5;
      return true;
    case Opcode::kLong1:
      if (!has(10) || next_[1] != 8)
        return false;
      number = load<std::int64_t>(2);
      next_ += 10;
      return true;
    case Opcode::kNone:
      number = if_none;
      ++next_;
      return true;
    default:
      return false;
  }
}

}  // namespace postflight
