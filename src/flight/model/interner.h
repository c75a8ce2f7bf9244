#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/hash.h"
#include "base/hash_index.h"

namespace postflight {

// Stores each distinct sequence once and numbers them 0, 1, 2, ... in the order
// of arrival. A job of a thousand ranks has a few hundred distinct stacks and
// shapes, so an entry refers to one with four bytes.
template <class T>
class Interner {
  static_assert(std::is_trivially_copyable_v<T> &&
                std::has_unique_object_representations_v<T>);

 public:
  std::uint32_t intern(std::span<const T> items) {
    const std::uint32_t known = index_.find_or_add(
        hash_bytes(std::as_bytes(items)), size(),
        [&](std::uint32_t id) { return same((*this)[id], items); });
    if (known != HashIndex::kNone)
      return known;
    items_.insert(items_.end(), items.begin(), items.end());
    ends_.push_back(items_.size());
    return size() - 1;
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

  // Removes all sequences but keeps the memory.
  void clear() {
    index_.clear();
    ends_.clear();
    items_.clear();
  }

  std::uint64_t memory_bytes() const {
    return items_.capacity() * sizeof(T) + ends_.capacity() * 8 +
           index_.memory_bytes();
  }

 private:
  static bool same(std::span<const T> a, std::span<const T> b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
  }

  std::vector<T> items_;
  std::vector<std::uint64_t> ends_;
  HashIndex index_;
};

}  // namespace postflight
