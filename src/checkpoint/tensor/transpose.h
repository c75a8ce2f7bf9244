#pragma once

#include <cstddef>
#include <cstdint>

namespace postflight {

// A 2-D transpose: from[row * from_row + column * size] is copied to
// to[column * to_column + row * size].
struct Transposition {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t from_row = 0;
  std::uint64_t to_column = 0;
};

// Supported element sizes: 1, 2, 4, 8, 16.
bool can_transpose(std::size_t size);

// `past_cache` writes with non-temporal stores: the result neither displaces
// the contents of the cache nor is in it afterwards.
void transpose(const Transposition& box, std::size_t size, bool past_cache);

}  // namespace postflight
