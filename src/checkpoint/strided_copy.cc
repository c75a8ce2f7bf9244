#include "checkpoint/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <immintrin.h>

namespace postflight {
namespace {

template <std::size_t kSize>
void copy_element(const std::byte* from, std::byte* to) {
  std::memcpy(to, from, kSize);
}

// A box of two dimensions in which one side steps by single elements along
// rows, the other along columns: from[row * from_row + column * size] goes to
// to[column * to_column + row * size].
struct Flip {
  const std::byte* from;
  std::byte* to;
  std::uint64_t rows;
  std::uint64_t columns;
  std::uint64_t from_row;
  std::uint64_t to_column;
};

template <std::size_t kSize>
void flip_plain(const Flip& flip, std::uint64_t row, std::uint64_t rows,
                std::uint64_t column, std::uint64_t columns) {
  for (std::uint64_t c = column; c < column + columns; ++c)
    for (std::uint64_t r = row; r < row + rows; ++r)
      copy_element<kSize>(flip.from + r * flip.from_row + c * kSize,
                          flip.to + c * flip.to_column + r * kSize);
}

__m128i load(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

void store(std::byte* to, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}

// Turns a small square around in registers: kSide rows and columns.
template <std::size_t kSize>
struct Square;

template <>
struct Square<8> {
  static constexpr std::uint64_t kSide = 2;
  static void flip(const std::byte* from, std::uint64_t from_row, std::byte* to,
                   std::uint64_t to_column) {
    const __m128i a = load(from);
    const __m128i b = load(from + from_row);
    store(to, _mm_unpacklo_epi64(a, b));
    store(to + to_column, _mm_unpackhi_epi64(a, b));
  }
};

template <>
struct Square<4> {
  static constexpr std::uint64_t kSide = 4;
  static void flip(const std::byte* from, std::uint64_t from_row, std::byte* to,
                   std::uint64_t to_column) {
    const __m128i a = load(from);
    const __m128i b = load(from + from_row);
    const __m128i c = load(from + 2 * from_row);
    const __m128i d = load(from + 3 * from_row);
    const __m128i ab_low = _mm_unpacklo_epi32(a, b);
    const __m128i ab_high = _mm_unpackhi_epi32(a, b);
    const __m128i cd_low = _mm_unpacklo_epi32(c, d);
    const __m128i cd_high = _mm_unpackhi_epi32(c, d);
    store(to, _mm_unpacklo_epi64(ab_low, cd_low));
    store(to + to_column, _mm_unpackhi_epi64(ab_low, cd_low));
    store(to + 2 * to_column, _mm_unpacklo_epi64(ab_high, cd_high));
    store(to + 3 * to_column, _mm_unpackhi_epi64(ab_high, cd_high));
  }
};

template <>
struct Square<2> {
  static constexpr std::uint64_t kSide = 8;
  static void flip(const std::byte* from, std::uint64_t from_row, std::byte* to,
                   std::uint64_t to_column) {
    __m128i in[8];
    for (std::size_t i = 0; i < 8; ++i)
      in[i] = load(from + i * from_row);
    __m128i pairs[8];
    for (std::size_t i = 0; i < 4; ++i) {
      pairs[i] = _mm_unpacklo_epi16(in[2 * i], in[2 * i + 1]);
      pairs[i + 4] = _mm_unpackhi_epi16(in[2 * i], in[2 * i + 1]);
    }
    for (std::size_t half = 0; half < 2; ++half) {
      const __m128i* const p = pairs + 4 * half;
      const __m128i low_a = _mm_unpacklo_epi32(p[0], p[1]);
      const __m128i low_b = _mm_unpackhi_epi32(p[0], p[1]);
      const __m128i high_a = _mm_unpacklo_epi32(p[2], p[3]);
      const __m128i high_b = _mm_unpackhi_epi32(p[2], p[3]);
      std::byte* const out = to + 4 * half * to_column;
      store(out, _mm_unpacklo_epi64(low_a, high_a));
      store(out + to_column, _mm_unpackhi_epi64(low_a, high_a));
      store(out + 2 * to_column, _mm_unpacklo_epi64(low_b, high_b));
      store(out + 3 * to_column, _mm_unpackhi_epi64(low_b, high_b));
    }
  }
};

// Eight by eight elements of 4 bytes. Past the cache, which would read each
// line before it is overwritten, if the target's lines are hit exactly.
template <bool kPast>
[[gnu::target("avx2")]] void flip_eight(const std::byte* from,
                                        std::uint64_t from_row, std::byte* to,
                                        std::uint64_t to_column) {
  __m256i rows[8];
  for (std::size_t i = 0; i < 8; ++i)
    rows[i] = _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(from + i * from_row));
  __m256i fours[8];
  for (std::size_t i = 0; i < 8; i += 4) {
    const __m256i a = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
    const __m256i b = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
    const __m256i c = _mm256_unpacklo_epi32(rows[i + 2], rows[i + 3]);
    const __m256i d = _mm256_unpackhi_epi32(rows[i + 2], rows[i + 3]);
    fours[i] = _mm256_unpacklo_epi64(a, c);
    fours[i + 1] = _mm256_unpackhi_epi64(a, c);
    fours[i + 2] = _mm256_unpacklo_epi64(b, d);
    fours[i + 3] = _mm256_unpackhi_epi64(b, d);
  }
  const auto put = [ to, to_column ](std::size_t column, __m256i value)
      __attribute__((target("avx2"), always_inline)) {
    auto* const at = reinterpret_cast<__m256i*>(to + column * to_column);
    if constexpr (kPast)
      _mm256_stream_si256(at, value);
    else
      _mm256_storeu_si256(at, value);
  };
  for (std::size_t i = 0; i < 4; ++i) {
    put(i, _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20));
    put(i + 4, _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31));
  }
}

bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0;
}

// The part of a box that whole tiles of 16 by 16 elements of 4 bytes make up: a
// line of the cache each way, so that it does not matter that lines a power of
// two apart share their place in the cache.
template <bool kPast>
void flip_tiles(const Flip& flip, std::uint64_t first, std::uint64_t rows,
                std::uint64_t columns) {
  constexpr std::uint64_t kSide = 8;
  constexpr std::uint64_t kLine = 16;
  for (std::uint64_t c = 0; c < columns; c += kLine)
    for (std::uint64_t r = first; r < first + rows; r += kLine)
      for (std::uint64_t y = c; y < c + kLine; y += kSide)
        for (std::uint64_t x = r; x < r + kLine; x += kSide)
          flip_eight<kPast>(flip.from + x * flip.from_row + y * 4,
                            flip.from_row, flip.to + y * flip.to_column + x * 4,
                            flip.to_column);
  if (kPast)
    _mm_sfence();
}

// Rows before the first whole line of the target; 0 too if its lines cannot be
// hit exactly.
std::uint64_t rows_before_line(const Flip& flip, bool& exact) {
  const auto at = reinterpret_cast<std::uintptr_t>(flip.to);
  exact = at % 4 == 0 && flip.to_column % 64 == 0;
  return exact ? (64 - at % 64) % 64 / 4 : 0;
}

constexpr std::uint64_t kTile = 32;

template <std::size_t kSize>
void flip_box(const Flip& flip) {
  if constexpr (kSize == 4) {
    static const bool wide = has_avx2();
    bool exact = false;
    std::uint64_t first = rows_before_line(flip, exact);
    if (first >= flip.rows)
      first = 0, exact = false;
    const std::uint64_t rows = (flip.rows - first) / 16 * 16;
    const std::uint64_t columns = flip.columns / 16 * 16;
    if (wide && rows > 0 && columns > 0) {
      if (exact)
        flip_tiles<true>(flip, first, rows, columns);
      else
        flip_tiles<false>(flip, first, rows, columns);
      flip_plain<kSize>(flip, 0, first, 0, columns);
      flip_plain<kSize>(flip, first + rows, flip.rows - first - rows, 0,
                        columns);
      flip_plain<kSize>(flip, 0, flip.rows, columns, flip.columns - columns);
      return;
    }
  }
  for (std::uint64_t c = 0; c < flip.columns; c += kTile) {
    const std::uint64_t columns = std::min(kTile, flip.columns - c);
    for (std::uint64_t r = 0; r < flip.rows; r += kTile) {
      const std::uint64_t rows = std::min(kTile, flip.rows - r);
      if constexpr (kSize == 2 || kSize == 4 || kSize == 8) {
        constexpr std::uint64_t kSide = Square<kSize>::kSide;
        const std::uint64_t whole_rows = rows / kSide * kSide;
        const std::uint64_t whole_columns = columns / kSide * kSide;
        for (std::uint64_t y = 0; y < whole_columns; y += kSide)
          for (std::uint64_t x = 0; x < whole_rows; x += kSide)
            Square<kSize>::flip(
                flip.from + (r + x) * flip.from_row + (c + y) * kSize,
                flip.from_row,
                flip.to + (c + y) * flip.to_column + (r + x) * kSize,
                flip.to_column);
        flip_plain<kSize>(flip, r + whole_rows, rows - whole_rows, c,
                          whole_columns);
        flip_plain<kSize>(flip, r, rows, c + whole_columns,
                          columns - whole_columns);
      } else {
        flip_plain<kSize>(flip, r, rows, c, columns);
      }
    }
  }
}

template <std::size_t kSize>
void copy_row(const std::byte* from, std::byte* to, const CopyDimension& row) {
  for (std::uint64_t i = 0; i < row.count; ++i)
    copy_element<kSize>(from + i * row.from_step, to + i * row.to_step);
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

bool can_flip(std::size_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

void flip(const Flip& box, std::size_t size) {
  switch (size) {
    case 1:
      return flip_box<1>(box);
    case 2:
      return flip_box<2>(box);
    case 4:
      return flip_box<4>(box);
    case 8:
      return flip_box<8>(box);
    default:
      return flip_box<16>(box);
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

}  // namespace

void copy_strided(const std::byte* from, std::byte* to, std::size_t size,
                  std::span<const CopyDimension> dimensions) {
  std::vector<CopyDimension> outer;
  for (const CopyDimension& dimension : dimensions) {
    if (dimension.count == 0)
      return;
    if (dimension.count > 1)
      outer.push_back(dimension);
  }
  if (outer.empty()) {
    std::memcpy(to, from, size);
    return;
  }
  const auto from_row =
      std::ranges::find(outer, size, &CopyDimension::from_step);
  const auto to_row = std::ranges::find(outer, size, &CopyDimension::to_step);
  if (from_row != outer.end() && from_row == to_row) {
    const std::uint64_t bytes = from_row->count * size;
    outer.erase(from_row);
    for_each(from, to, outer, [bytes](const std::byte* a, std::byte* b) {
      std::memcpy(b, a, bytes);
    });
    return;
  }
  if (from_row != outer.end() && to_row != outer.end() && can_flip(size)) {
    const CopyDimension columns = *from_row;
    const CopyDimension rows = *to_row;
    // By place, for windows that overlap have several dimensions of one step.
    const auto first = std::max(from_row, to_row);
    const auto second = std::min(from_row, to_row);
    outer.erase(first);
    outer.erase(second);
    for_each(from, to, outer, [&](const std::byte* a, std::byte* b) {
      flip({a, b, rows.count, columns.count, rows.from_step, columns.to_step},
           size);
    });
    return;
  }
  const auto inner =
      std::ranges::min_element(outer, {}, &CopyDimension::to_step);
  const CopyDimension row = *inner;
  outer.erase(inner);
  for_each(from, to, outer, [&](const std::byte* a, std::byte* b) {
    copy_line(a, b, size, row);
  });
}

}  // namespace postflight
