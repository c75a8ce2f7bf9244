#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>

#include "pickle/value.h"

namespace postflight {

// The memo: PUT and MEMOIZE store into it, GET loads from it. Writers number
// entries 0, 1, 2, ... so an array beats a map; keys that would leave a large
// gap go to a map, and not a hash map, as the input chooses the keys.
class Memo {
 public:
  // BINGET's keys have one byte, so that many slots always exist.
  static constexpr std::uint64_t kNear = 256;

  Memo() { clear(); }

  void clear();
  // A hint of how many entries there will be.
  void expect(std::size_t count) { reserve(count); }
  [[gnu::always_inline]] void remember(std::uint64_t key, Value value) {
    if (key == next_ && key < capacity_) [[likely]] {
      slots_.get()[key] = value;
      size_ = ++next_;
      ++count_;
    } else {
      remember_elsewhere(key, value);
    }
  }
  // nullptr if there is no such entry.
  const Value* find(std::uint64_t key) const {
    if (key < size_ && !is_empty(slots_.get()[key])) [[likely]]
      return &slots_.get()[key];
    return find_elsewhere(key);
  }

  // The slots themselves: at least kNear, those without an entry is_empty().
  const Value* slots() const { return slots_.get(); }
  static bool is_empty(const Value& slot) { return slot.is(kNothing); }

  std::uint64_t count() const { return count_; }
  std::uint64_t memory_bytes() const;

 private:
  static constexpr Kind kNothing{31};  // no opcode makes such a value
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  struct Free {
    void operator()(Value* memory) const { std::free(memory); }
  };

  void remember_elsewhere(std::uint64_t key, Value value);
  const Value* find_elsewhere(std::uint64_t key) const;
  void reserve(std::uint64_t capacity);
  void fill_up_to(std::uint64_t size);  // with nothing

  std::unique_ptr<Value, Free> slots_;  // grown by realloc
  std::uint64_t size_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint64_t next_ = 0;  // the key after the last slot; kNever if in far_
  std::uint64_t count_ = 0;
  std::map<std::uint64_t, Value> far_;
};

}  // namespace postflight
