#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace postflight {

// Sorts what has a `hash` and is less by it first: into as many buckets as
// there are items, by the front of their hashes, and each bucket by itself. So
// it takes a few steps an item, and a plain sort if hashes were made to
// collide.
template <class T, class Less>
void sort_by_hash(std::vector<T>& items, const Less& less) {
  constexpr std::size_t kFewItems = 32;
  if (items.size() <= kFewItems) {
    std::ranges::sort(items, less);
    return;
  }
  const auto bits = static_cast<unsigned>(std::bit_width(items.size()));
  constexpr unsigned kHashBits = 8 * sizeof(items[0].hash);
  const auto bucket = [bits](const T& item) {
    return static_cast<std::size_t>(item.hash >> (kHashBits - bits));
  };
  std::vector<std::size_t> ends(std::size_t{1} << bits);
  for (const T& item : items)
    ++ends[bucket(item)];
  std::size_t before = 0;
  for (std::size_t& end : ends)
    before += std::exchange(end, before);
  std::vector<T> sorted(items.size());
  for (const T& item : items)
    sorted[ends[bucket(item)]++] = item;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    if (end - begin > 1)
      std::ranges::sort(std::span(sorted).subspan(begin, end - begin), less);
    begin = end;
  }
  items = std::move(sorted);
}

}  // namespace postflight
