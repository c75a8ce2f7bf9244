#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace postflight {

// A growing array in an Arena: the items of a list, set or dict.
template <class T>
struct Items {
  T* data = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;

  std::span<const T> view() const { return {data, size}; }
};

// Most containers have up to three items, and nearly all others up to eight:
// not worth a call of memmove.
template <class T>
void copy_items(const T* from, std::size_t count, T* to) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (count > 8) {
    std::copy_n(from, count, to);
    return;
  }
  if (count > 3) {  // the first four and the last, which may be the same
    std::memcpy(to, from, 4 * sizeof(T));
    std::memcpy(to + count - 4, from + count - 4, 4 * sizeof(T));
    return;
  }
  if (count > 0)
    to[0] = from[0];
  if (count > 1)
    to[1] = from[1];
  if (count > 2)
    to[2] = from[2];
}

}  // namespace postflight
