#include "checkpoint/tensor/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "checkpoint/tensor/transpose.h"

namespace postflight {
namespace {

template <std::size_t kSize>
void copy_row(const std::byte* from, std::byte* to, const CopyDimension& row) {
  for (std::uint64_t i = 0; i < row.count; ++i)
    std::memcpy(to + i * row.to_step, from + i * row.from_step, kSize);
}

void copy_line(const std::byte* from, std::byte* to, std::size_t size,
               const CopyDimension& row) {
  switch (size) {
    case 1:
      return copy_row<1>(from, to, row);
    case 2:
      return copy_row<2>(from, to, row);
    case 4:
      return copy_row<4>(from, to, row);
    case 8:
      return copy_row<8>(from, to, row);
    case 16:
      return copy_row<16>(from, to, row);
    default:
      for (std::uint64_t i = 0; i < row.count; ++i)
        std::memcpy(to + i * row.to_step, from + i * row.from_step, size);
  }
}

// Calls `body(from, to)` for every index of `outer`.
template <class Body>
void for_each(const std::byte* from, std::byte* to,
              std::span<const CopyDimension> outer, const Body& body) {
  std::vector<std::uint64_t> index(outer.size(), 0);
  for (;;) {
    body(from, to);
    std::size_t i = outer.size();
    for (;;) {
      if (i == 0)
        return;
      --i;
      from += outer[i].from_step;
      to += outer[i].to_step;
      if (++index[i] < outer[i].count)
        break;
      from -= outer[i].from_step * outer[i].count;
      to -= outer[i].to_step * outer[i].count;
      index[i] = 0;
    }
  }
}

// Small enough that both sides stay in the cache.
constexpr std::uint64_t kTile = 64;

// Two dimensions, one innermost in the source, the other in the target: tile by
// tile.
void copy_tiles(const std::byte* from, std::byte* to, std::size_t size,
                const CopyDimension& rows, const CopyDimension& columns) {
  for (std::uint64_t c = 0; c < columns.count; c += kTile)
    for (std::uint64_t r = 0; r < rows.count; r += kTile) {
      const CopyDimension row{std::min(kTile, rows.count - r), rows.from_step,
                              rows.to_step};
      const std::uint64_t end = std::min(c + kTile, columns.count);
      for (std::uint64_t i = c; i < end; ++i)
        copy_line(from + r * rows.from_step + i * columns.from_step,
                  to + r * rows.to_step + i * columns.to_step, size, row);
    }
}

}  // namespace

void copy_strided(const std::byte* from, std::byte* to, std::size_t size,
                  std::span<const CopyDimension> dimensions) {
  std::vector<CopyDimension> outer;
  std::uint64_t bytes = size;
  for (const CopyDimension& dimension : dimensions) {
    if (dimension.count == 0)
      return;
    if (dimension.count > 1)
      outer.push_back(dimension);
    bytes *= dimension.count;
  }
  // Elements that are adjacent on both sides are one larger element.
  for (;;) {
    const auto run = std::ranges::find_if(outer, [size](const auto& dimension) {
      return dimension.from_step == size && dimension.to_step == size;
    });
    if (run == outer.end())
      break;
    size *= run->count;
    outer.erase(run);
  }
  if (outer.empty()) {
    std::memcpy(to, from, size);
    return;
  }
  // The innermost dimension of either side, by index, as overlapping windows
  // have several dimensions of one step.
  const auto from_inner =
      std::ranges::min_element(outer, {}, &CopyDimension::from_step);
  const auto to_inner =
      std::ranges::min_element(outer, {}, &CopyDimension::to_step);
  const CopyDimension columns = *from_inner;
  const CopyDimension rows = *to_inner;
  const bool turned = from_inner != to_inner;
  outer.erase(std::max(from_inner, to_inner));
  if (turned)
    outer.erase(std::min(from_inner, to_inner));
  if (!turned) {
    for_each(from, to, outer, [&](const std::byte* a, std::byte* b) {
      copy_line(a, b, size, rows);
    });
  } else if (can_transpose(size) && columns.from_step == size &&
             rows.to_step == size) {
    // More than the cache holds in addition to the source.
    constexpr std::uint64_t kLarge = 512 << 10;
    for_each(from, to, outer, [&](const std::byte* a, std::byte* b) {
      transpose(
          {a, b, rows.count, columns.count, rows.from_step, columns.to_step},
          size, bytes >= kLarge);
    });
  } else {
    for_each(from, to, outer, [&](const std::byte* a, std::byte* b) {
      copy_tiles(a, b, size, rows, columns);
    });
  }
}

namespace {

template <class T>
void negate_integers(std::span<std::byte> elements) {
  for (std::size_t i = 0; i + sizeof(T) <= elements.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, &elements[i], sizeof(T));
    value = static_cast<T>(T{0} - value);
    std::memcpy(&elements[i], &value, sizeof(T));
  }
}

// The sign is the top bit of a floating-point number's last byte.
void flip_signs(std::span<std::byte> elements, std::size_t first,
                std::size_t step) {
  for (std::size_t i = first; i < elements.size(); i += step)
    elements[i] ^= std::byte{0x80};
}

void negate(const Dtype& dtype, std::span<std::byte> elements) {
  switch (dtype.numeric) {
    case Numeric::kFloat:
    case Numeric::kBfloat16:
      flip_signs(elements, dtype.size - 1, dtype.size);
      return;
    case Numeric::kComplex:
      flip_signs(elements, dtype.size / 2 - 1, dtype.size / 2);
      return;
    case Numeric::kSigned:
    case Numeric::kUnsigned:
      if (dtype.size == 1)
        negate_integers<std::uint8_t>(elements);
      else if (dtype.size == 2)
        negate_integers<std::uint16_t>(elements);
      else if (dtype.size == 4)
        negate_integers<std::uint32_t>(elements);
      else
        negate_integers<std::uint64_t>(elements);
      return;
    default:
      if (is_float8(dtype.numeric))
        flip_signs(elements, 0, 1);
      return;
  }
}

}  // namespace

void finish_elements(const Tensor& tensor, bool big_endian,
                     std::span<std::byte> elements) {
  const Dtype& dtype = tensor.dtype;
  if (big_endian && dtype.swap > 1)
    for (std::size_t i = 0; i + dtype.swap <= elements.size(); i += dtype.swap)
      std::reverse(
          elements.begin() + static_cast<std::ptrdiff_t>(i),
          elements.begin() + static_cast<std::ptrdiff_t>(i + dtype.swap));
  if (tensor.conjugated)
    flip_signs(elements, dtype.size - 1, dtype.size);
  if (tensor.negated)
    negate(dtype, elements);
}

}  // namespace postflight
