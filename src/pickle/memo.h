#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pickle/value.h"

namespace postflight {

// What PUT and MEMOIZE remember and GET recalls. Writers number their entries
// 0, 1, 2, ... so a vector beats a map; keys that would leave a large gap go to
// a map. Not to a hash map: keys are the input's to choose.
class Memo {
 public:
  // BINGET's keys have one byte, so that many slots are always there.
  static constexpr std::uint64_t kNear = 256;

  Memo() { clear(); }

  void clear();
  // Says about how many there will be.
  void expect(std::size_t count) { slots_.reserve(count); }
  [[gnu::always_inline]] void remember(std::uint64_t key, Value value) {
    if (key == slots_.size() && far_.empty()) [[likely]] {
      ++count_;
      slots_.push_back(value);
    } else {
      remember_elsewhere(key, value);
    }
  }
  // nullptr if there is no such entry.
  const Value* find(std::uint64_t key) const {
    if (key < slots_.size() && !is_empty(slots_[key])) [[likely]]
      return &slots_[key];
    return find_elsewhere(key);
  }

  // The slots themselves: at least kNear, those without an entry is_empty().
  const Value* slots() const { return slots_.data(); }
  static bool is_empty(const Value& slot) { return slot.is(kNothing); }

  std::uint64_t count() const { return count_; }
  std::uint64_t memory_bytes() const;

 private:
  static constexpr Kind kNothing{31};  // no opcode makes such a value

  void remember_elsewhere(std::uint64_t key, Value value);
  const Value* find_elsewhere(std::uint64_t key) const;
  // Whether the map had the key, which is to be found in a slot now.
  bool forget_far(std::uint64_t key) {
    return !far_.empty() && far_.erase(key) != 0;
  }

  std::vector<Value> slots_;
  std::map<std::uint64_t, Value> far_;
  std::uint64_t count_ = 0;
};

}  // namespace postflight
