#pragma once

#include <cstddef>
#include <cstdint>

namespace postflight {

// A box of two dimensions that is turned around: from[row * from_row + column *
// size] goes to to[column * to_column + row * size].
struct Transposition {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t from_row = 0;
  std::uint64_t to_column = 0;
};

// Elements of these sizes can be turned around: 1, 2, 4, 8, 16.
bool can_transpose(std::size_t size);

// If it is `past_cache`, the result does not displace what the cache has, and
// is not there afterwards.
void transpose(const Transposition& box, std::size_t size, bool past_cache);

}  // namespace postflight
