#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace postflight {

// Maps addresses to small numbers with 16 bytes per slot, where a node-based
// map takes 56: a hostile pickle can make a container out of every byte.
class PointerMap {
 public:
  // The number for `key`, inserted as 0 if missing. Valid until the next call.
  std::uint32_t& operator[](const void* key) {
    if ((size_ + 1) * 4 > slots_.size() * 3)
      grow();
    Slot& slot = slots_[position(key)];
    if (slot.key == nullptr) {
      slot.key = key;
      ++size_;
    }
    return slot.number;
  }

  // 0 if `key` is missing.
  std::uint32_t find(const void* key) const {
    return slots_.empty() ? 0 : slots_[position(key)].number;
  }

  // Makes room for `count` entries in total.
  void reserve(std::size_t count) {
    if (count * 4 > slots_.size() * 3)
      grow(std::bit_ceil(count * 4 / 3 + 1));
  }

  std::uint64_t memory_bytes() const {
    return slots_.capacity() * sizeof(Slot);
  }

  // Two rounds: after one, collisions would depend only on the distances
  // between addresses, which a hostile pickle controls.
  static std::size_t hash(const void* key) {
    std::uint64_t bits = reinterpret_cast<std::uintptr_t>(key);
    bits = (bits ^ bits >> 32) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 29) * 0x9e3779b97f4a7c15u;
    return bits >> 32;
  }

 private:
  struct Slot {
    const void* key = nullptr;
    std::uint32_t number = 0;
  };

  std::size_t position(const void* key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(key) & mask;
    while (slots_[at].key != nullptr && slots_[at].key != key)
      at = (at + 1) & mask;
    return at;
  }

  void grow(std::size_t least = 64) {
    std::vector<Slot> old(std::max(least, slots_.size() * 2));
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.key != nullptr)
        slots_[position(slot.key)] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace postflight
