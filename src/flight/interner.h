#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/hash.h"

namespace postflight {

// Keeps one copy of each distinct sequence and numbers them 0, 1, 2, ... in
// the order in which they came. A job of a thousand ranks has a few hundred
// distinct stacks and shapes; each entry then holds four bytes for one.
template <class T>
class Interner {
  static_assert(std::is_trivially_copyable_v<T> &&
                std::has_unique_object_representations_v<T>);

 public:
  std::uint32_t intern(std::span<const T> items) {
    if (ends_.size() * 2 >= slots_.size())
      grow();
    const std::uint64_t hash = hash_of(items);
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] != kFree; slot = (slot + 1) & (slots_.size() - 1)) {
      const std::uint32_t id = slots_[slot];
      if (hashes_[id] == static_cast<std::uint32_t>(hash >> 32) &&
          same((*this)[id], items))
        return id;
    }
    const auto id = static_cast<std::uint32_t>(ends_.size());
    slots_[slot] = id;
    hashes_.push_back(static_cast<std::uint32_t>(hash >> 32));
    items_.insert(items_.end(), items.begin(), items.end());
    ends_.push_back(items_.size());
    return id;
  }

  // Valid until the next intern().
  std::span<const T> operator[](std::uint32_t id) const {
    assert(id < ends_.size());
    const std::size_t begin = id == 0 ? 0 : ends_[id - 1];
    return std::span(items_).subspan(begin, ends_[id] - begin);
  }

  std::uint32_t size() const {
    return static_cast<std::uint32_t>(ends_.size());
  }

  // Forgets all, but keeps the memory.
  void clear() {
    std::ranges::fill(slots_, kFree);
    hashes_.clear();
    ends_.clear();
    items_.clear();
  }

  std::uint64_t memory_bytes() const {
    return items_.capacity() * sizeof(T) + ends_.capacity() * 8 +
           (hashes_.capacity() + slots_.capacity()) * 4;
  }

 private:
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};

  static bool same(std::span<const T> a, std::span<const T> b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
  }
  static std::uint64_t hash_of(std::span<const T> items) {
    return hash_bytes(std::as_bytes(items));
  }

  void grow() {
    const std::size_t room = std::max<std::size_t>(64, slots_.size() * 2);
    slots_.assign(room, kFree);
    for (std::uint32_t id = 0; id < size(); ++id) {
      std::size_t slot = hash_of((*this)[id]) & (room - 1);
      while (slots_[slot] != kFree)
        slot = (slot + 1) & (room - 1);
      slots_[slot] = id;
    }
  }

  std::vector<T> items_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> hashes_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace postflight
