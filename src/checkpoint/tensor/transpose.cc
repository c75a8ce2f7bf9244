// Transposing a matrix at memory speed. The cost is not in the moves but in the
// order of memory accesses:
//
// - A cache line that is written in parts is read first. So whole lines of 64
// bytes
//   are assembled in registers and written with non-temporal stores: 8 ms
//   instead of 26 for 64 MiB.
// - The columns of a large result are on a page each. If all of them are
// visited in
//   turn, the TLB has lost the first when it is needed again; it holds 1,024: 8
//   ms instead of 12.
// - The source is read along its rows, 64 bytes of each, of few enough rows at
// a time
//   for the hardware prefetcher.
//
// In registers: 16 bytes of each of 16 / size rows form a square. Interleaving
// the first half of its rows with the second, element by element, log2(rows)
// times, leaves its columns. A register of 512 bits does so with four squares
// below each other, whose columns then are whole lines.

#include "checkpoint/tensor/transpose.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "checkpoint/model/stream_copy.h"

// g++ 12 warns of a placeholder inside its own intrinsics (its bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace postflight {
namespace {

constexpr std::uint64_t kPagesAtOnce = 1024;

template <std::size_t kSize>
constexpr std::uint64_t kSide = 16 / kSize;  // of a square

template <std::size_t kSize>
constexpr std::uint64_t kInLine = kCacheLine / kSize;  // elements

// The edges, element by element.
template <std::size_t kSize>
void turn_plain(const Transposition& box) {
  for (std::uint64_t column = 0; column < box.columns; ++column)
    for (std::uint64_t row = 0; row < box.rows; ++row)
      std::memcpy(box.to + column * box.to_column + row * kSize,
                  box.from + row * box.from_row + column * kSize, kSize);
}

__m128i load_unaligned(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

template <std::size_t kSize>
__m128i unpack_low(__m128i a, __m128i b) {
  if constexpr (kSize == 1)
    return _mm_unpacklo_epi8(a, b);
  else if constexpr (kSize == 2)
    return _mm_unpacklo_epi16(a, b);
  else if constexpr (kSize == 4)
    return _mm_unpacklo_epi32(a, b);
  else
    return _mm_unpacklo_epi64(a, b);
}

template <std::size_t kSize>
__m128i unpack_high(__m128i a, __m128i b) {
  if constexpr (kSize == 1)
    return _mm_unpackhi_epi8(a, b);
  else if constexpr (kSize == 2)
    return _mm_unpackhi_epi16(a, b);
  else if constexpr (kSize == 4)
    return _mm_unpackhi_epi32(a, b);
  else
    return _mm_unpackhi_epi64(a, b);
}

template <std::size_t kSize>
void turn_square(const std::byte* from, std::uint64_t from_row, std::byte* to,
                 std::uint64_t to_column) {
  constexpr std::uint64_t kLanes = kSide<kSize>;
  __m128i now[kLanes];
  for (std::uint64_t i = 0; i < kLanes; ++i)
    now[i] = load_unaligned(from + i * from_row);
  for (std::uint64_t halved = 1; halved < kLanes; halved *= 2) {
    __m128i next[kLanes];
    for (std::uint64_t i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = unpack_low<kSize>(now[i], now[i + kLanes / 2]);
      next[2 * i + 1] = unpack_high<kSize>(now[i], now[i + kLanes / 2]);
    }
    std::copy_n(next, kLanes, now);
  }
  for (std::uint64_t i = 0; i < kLanes; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * to_column), now[i]);
}

// Whole squares, through the cache.
template <std::size_t kSize>
void turn_near(const Transposition& box) {
  for (std::uint64_t line = 0; line < box.columns; line += kInLine<kSize>) {
    const std::uint64_t end = std::min(line + kInLine<kSize>, box.columns);
    for (std::uint64_t row = 0; row < box.rows; row += kSide<kSize>)
      for (std::uint64_t column = line; column < end; column += kSide<kSize>)
        turn_square<kSize>(
            box.from + row * box.from_row + column * kSize, box.from_row,
            box.to + column * box.to_column + row * kSize, box.to_column);
  }
}

// Joins the previous 64 bytes of a column and the current ones: if the result
// is not aligned to cache lines, each line has the end of one and the beginning
// of the other.
struct alignas(kCacheLine) Pending {
  std::byte before[kCacheLine];
  std::byte made[kCacheLine];
};

void put(Pending& pending, std::byte* to, bool first) {
  const std::uint64_t phase = reinterpret_cast<std::uintptr_t>(to) % kCacheLine;
  if (first && phase != 0) {
    std::memcpy(to, pending.made, kCacheLine - phase);
  } else {
    const std::byte* const line =
        reinterpret_cast<const std::byte*>(&pending) + kCacheLine - phase;
    for (std::uint64_t i = 0; i < kCacheLine; i += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(to - phase + i),
                       load_unaligned(line + i));
  }
  std::memcpy(pending.before, pending.made, kCacheLine);
}

// Whole lines of rows, whole squares of columns, at any alignment.
template <std::size_t kSize>
void turn_past(const Transposition& box) {
  std::vector<Pending> pending(std::min(kPagesAtOnce, box.columns));
  for (std::uint64_t block = 0; block < box.columns; block += kPagesAtOnce) {
    const std::uint64_t end = std::min(block + kPagesAtOnce, box.columns);
    for (std::uint64_t row = 0; row < box.rows; row += kInLine<kSize>)
      for (std::uint64_t line = block; line < end; line += kInLine<kSize>) {
        const std::byte* const from =
            box.from + row * box.from_row + line * kSize;
        // More rows than the hardware prefetches by itself.
        for (std::uint64_t i = 0; i < kInLine<kSize>; ++i)
          _mm_prefetch(reinterpret_cast<const char*>(from + i * box.from_row +
                                                     kCacheLine),
                       _MM_HINT_T0);
        const std::uint64_t columns = std::min(kInLine<kSize>, end - line);
        Pending* const made = &pending[line - block];
        for (std::uint64_t x = 0; x < kInLine<kSize>; x += kSide<kSize>)
          for (std::uint64_t y = 0; y < columns; y += kSide<kSize>)
            turn_square<kSize>(from + x * box.from_row + y * kSize,
                               box.from_row, made[y].made + x * kSize,
                               sizeof(Pending));
        for (std::uint64_t y = 0; y < columns; ++y)
          put(made[y], box.to + (line + y) * box.to_column + row * kSize,
              row == 0);
      }
    for (std::uint64_t column = block; column < end; ++column) {
      std::byte* const to = box.to + column * box.to_column + box.rows * kSize;
      const std::uint64_t phase =
          reinterpret_cast<std::uintptr_t>(to) % kCacheLine;
      std::memcpy(to - phase, pending[column - block].made + kCacheLine - phase,
                  phase);
    }
  }
  _mm_sfence();
}

template <std::size_t kSize>
[[gnu::target("avx512bw")]] __m512i unpack_low(__m512i a, __m512i b) {
  if constexpr (kSize == 1)
    return _mm512_unpacklo_epi8(a, b);
  else if constexpr (kSize == 2)
    return _mm512_unpacklo_epi16(a, b);
  else if constexpr (kSize == 4)
    return _mm512_unpacklo_epi32(a, b);
  else
    return _mm512_unpacklo_epi64(a, b);
}

template <std::size_t kSize>
[[gnu::target("avx512bw")]] __m512i unpack_high(__m512i a, __m512i b) {
  if constexpr (kSize == 1)
    return _mm512_unpackhi_epi8(a, b);
  else if constexpr (kSize == 2)
    return _mm512_unpackhi_epi16(a, b);
  else if constexpr (kSize == 4)
    return _mm512_unpackhi_epi32(a, b);
  else
    return _mm512_unpackhi_epi64(a, b);
}

// Four squares below each other, to whole lines.
template <std::size_t kSize>
[[gnu::target("avx512bw")]] void turn_four(const std::byte* from,
                                           std::uint64_t from_row,
                                           std::byte* to,
                                           std::uint64_t to_column) {
  constexpr std::uint64_t kLanes = kSide<kSize>;
  __m512i now[kLanes];
  for (std::uint64_t i = 0; i < kLanes; ++i) {
    const std::byte* const row = from + i * from_row;
    const std::uint64_t next = kLanes * from_row;
    __m512i four = _mm512_castsi128_si512(load_unaligned(row));
    four = _mm512_inserti32x4(four, load_unaligned(row + next), 1);
    four = _mm512_inserti32x4(four, load_unaligned(row + 2 * next), 2);
    now[i] = _mm512_inserti32x4(four, load_unaligned(row + 3 * next), 3);
  }
  for (std::uint64_t halved = 1; halved < kLanes; halved *= 2) {
    __m512i next[kLanes];
    for (std::uint64_t i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = unpack_low<kSize>(now[i], now[i + kLanes / 2]);
      next[2 * i + 1] = unpack_high<kSize>(now[i], now[i + kLanes / 2]);
    }
    std::copy_n(next, kLanes, now);
  }
  for (std::uint64_t i = 0; i < kLanes; ++i)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i * to_column), now[i]);
}

// As turn_past, for a result that is aligned to cache lines.
template <std::size_t kSize>
[[gnu::target("avx512bw")]] void turn_lines(const Transposition& box) {
  for (std::uint64_t block = 0; block < box.columns; block += kPagesAtOnce) {
    const std::uint64_t end = std::min(block + kPagesAtOnce, box.columns);
    for (std::uint64_t row = 0; row < box.rows; row += kInLine<kSize>)
      for (std::uint64_t column = block; column < end; column += kSide<kSize>)
        turn_four<kSize>(
            box.from + row * box.from_row + column * kSize, box.from_row,
            box.to + column * box.to_column + row * kSize, box.to_column);
  }
  _mm_sfence();
}

bool has_wide_registers() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bw") != 0;
}

template <std::size_t kSize>
void turn(const Transposition& box, bool past_cache) {
  static const bool wide = has_wide_registers();
  const std::uint64_t ahead =
      (kCacheLine - reinterpret_cast<std::uintptr_t>(box.to) % kCacheLine) %
      kCacheLine;
  const bool exact =
      wide && box.to_column % kCacheLine == 0 && ahead % kSize == 0;
  const std::uint64_t first =
      past_cache && exact ? std::min(ahead / kSize, box.rows) : 0;
  const std::uint64_t unit = past_cache ? kInLine<kSize> : kSide<kSize>;
  const std::uint64_t rows = (box.rows - first) / unit * unit;
  const std::uint64_t columns = box.columns / kSide<kSize> * kSide<kSize>;
  const auto part = [&box](std::uint64_t row, std::uint64_t row_count,
                           std::uint64_t column, std::uint64_t column_count) {
    return Transposition{box.from + row * box.from_row + column * kSize,
                         box.to + column * box.to_column + row * kSize,
                         row_count,
                         column_count,
                         box.from_row,
                         box.to_column};
  };
  const Transposition whole = part(first, rows, 0, columns);
  if (rows == 0 || columns == 0)
    return turn_plain<kSize>(box);
  if (!past_cache)
    turn_near<kSize>(whole);
  else if (exact)
    turn_lines<kSize>(whole);
  else
    turn_past<kSize>(whole);
  turn_plain<kSize>(part(0, first, 0, columns));
  const std::uint64_t last = first + rows;
  turn_plain<kSize>(part(last, box.rows - last, 0, columns));
  turn_plain<kSize>(part(0, box.rows, columns, box.columns - columns));
}

}  // namespace

bool can_transpose(std::size_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

void transpose(const Transposition& box, std::size_t size, bool past_cache) {
  switch (size) {
    case 1:
      return turn<1>(box, past_cache);
    case 2:
      return turn<2>(box, past_cache);
    case 4:
      return turn<4>(box, past_cache);
    case 8:
      return turn<8>(box, past_cache);
    default:
      return turn<16>(box, past_cache);
  }
}

}  // namespace postflight
