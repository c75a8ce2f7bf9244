#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace postflight {

// An open-addressing hash table of indexes into a list kept elsewhere. A slot
// takes 8 bytes, so a lookup touches one cache line where a node-based map
// touches three. Use a seeded hash (base/hash.h) for untrusted keys.
class HashIndex {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  bool is_empty() const { return size_ == 0; }

  std::uint64_t memory_bytes() const {
    return slots_.capacity() * sizeof(Slot);
  }

  // Removes all entries but keeps the memory.
  void clear() {
    std::ranges::fill(slots_, Slot());
    size_ = 0;
  }

  void reserve(std::size_t count) {
    if (count * 4 > slots_.size() * 3)
      resize(std::bit_ceil(count * 4 / 3 + 1));
  }

  // Prefetches the slot of a hash that will be looked up soon.
  void prefetch(std::uint64_t hash) const {
    if (!slots_.empty())
      __builtin_prefetch(
          &slots_[static_cast<std::uint32_t>(hash) & (slots_.size() - 1)]);
  }

  // The first index added with this hash for which `is_wanted` is true.
  template <class IsWanted>
  std::uint32_t find(std::uint64_t hash, const IsWanted& is_wanted) const {
    if (slots_.empty())
      return kNone;
    const auto wanted = static_cast<std::uint32_t>(hash);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = wanted & mask; slots_[at].index != kNone;
         at = (at + 1) & mask)
      if (slots_[at].hash == wanted && is_wanted(slots_[at].index))
        return slots_[at].index;
    return kNone;
  }

  // The same; if there is none, adds `index`.
  template <class IsWanted>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t index,
                            const IsWanted& is_wanted) {
    make_room();
    const auto wanted = static_cast<std::uint32_t>(hash);
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = wanted & mask;
    for (; slots_[at].index != kNone; at = (at + 1) & mask)
      if (slots_[at].hash == wanted && is_wanted(slots_[at].index))
        return slots_[at].index;
    slots_[at] = {wanted, index};
    ++size_;
    return kNone;
  }

  void add(std::uint64_t hash, std::uint32_t index) {
    make_room();
    put({static_cast<std::uint32_t>(hash), index});
    ++size_;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t index = kNone;
  };

  void make_room() {
    if ((size_ + 1) * 4 > slots_.size() * 3)
      resize(slots_.empty() ? 64 : slots_.size() * 2);
  }

  void put(const Slot& slot) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = slot.hash & mask;
    while (slots_[at].index != kNone)
      at = (at + 1) & mask;
    slots_[at] = slot;
  }

  void resize(std::size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    // Starts after a free slot, so that entries with equal hashes keep their
    // order.
    std::size_t first = 0;
    while (first < old.size() && old[first].index != kNone)
      ++first;
    for (std::size_t i = 0; i < old.size(); ++i)
      if (const Slot& slot = old[(first + i) % old.size()]; slot.index != kNone)
        put(slot);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace postflight
