#pragma once

#include <cstdint>
#include <span>

namespace postflight {

// A growing array in an Arena: the items of a list, set or dict.
template <class T>
struct Items {
  T* data = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;

  std::span<const T> view() const { return {data, size}; }
};

}  // namespace postflight
