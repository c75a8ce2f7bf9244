// CRC-32 at the speed of memory. The bytes are the coefficients of a
// polynomial, of which the CRC is the remainder; a stretch of it can be
// replaced by any other with the same remainder. So 128 bits a of the front are
// folded into those n bits further on: with carry-less multiplication, a * x^n
// has the same remainder as (high half of a) * (x^(n+32) mod P) + (low half) *
// (x^(n-32) mod P), in the order of bits that zip uses. (Gopal et al., "Fast
// CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009.) At the
// end 16 bytes are left, which zlib's tables take. Slicing tables, as zlib has
// them, reach 1 to 2 bytes a cycle; this 8 to 32.

#include "checkpoint/crc32.h"

#include <cstddef>
#include <cstring>

#include <immintrin.h>
#include <zlib.h>

namespace postflight {
namespace {

constexpr std::uint32_t kPolynomial = 0xedb88320;

// x^power mod P with the lowest power in the highest bit, as the multiplication
// wants it: one place to the left.
constexpr std::uint64_t fold_constant(int power) {
  std::uint32_t remainder = 0x80000000;
  for (int i = 0; i < power; ++i)
    remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
  return std::uint64_t{remainder} << 1;
}

static_assert(fold_constant(128 + 32) == 0x1751997d0);
static_assert(fold_constant(128 - 32) == 0x0ccaa009e);

constexpr std::uint64_t kFront128 = fold_constant(128 + 32);
constexpr std::uint64_t kBack128 = fold_constant(128 - 32);
constexpr std::uint64_t kFront512 = fold_constant(512 + 32);
constexpr std::uint64_t kBack512 = fold_constant(512 - 32);
constexpr std::uint64_t kFront2048 = fold_constant(2048 + 32);
constexpr std::uint64_t kBack2048 = fold_constant(2048 - 32);

std::uint32_t by_tables(const std::byte* bytes, std::size_t size,
                        std::uint32_t crc) {
  return static_cast<std::uint32_t>(
      ::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes), size));
}

// The CRC that leaves the register empty, so that only what follows counts.
constexpr std::uint32_t kEmptyRegister = ~std::uint32_t{0};

[[gnu::target("pclmul,sse4.1")]] inline __m128i load(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

[[gnu::target("pclmul,sse4.1")]] inline __m128i fold(__m128i value,
                                                     __m128i constants,
                                                     __m128i onto) {
  return _mm_xor_si128(
      _mm_xor_si128(_mm_clmulepi64_si128(value, constants, 0x00),
                    _mm_clmulepi64_si128(value, constants, 0x11)),
      onto);
}

[[gnu::target("pclmul,sse4.1")]] inline __m128i constants(std::uint64_t front,
                                                          std::uint64_t back) {
  return _mm_set_epi64x(static_cast<long long>(back),
                        static_cast<long long>(front));
}

// At least 64 bytes, in four strands, for a multiplication takes four times as
// long as the next may start after.
[[gnu::target("pclmul,sse4.1")]] std::uint32_t by_128(const std::byte* bytes,
                                                      std::size_t size,
                                                      std::uint32_t crc) {
  __m128i a =
      _mm_xor_si128(load(bytes), _mm_cvtsi32_si128(static_cast<int>(~crc)));
  __m128i b = load(bytes + 16);
  __m128i c = load(bytes + 32);
  __m128i d = load(bytes + 48);
  const __m128i far = constants(kFront512, kBack512);
  for (bytes += 64, size -= 64; size >= 64; bytes += 64, size -= 64) {
    a = fold(a, far, load(bytes));
    b = fold(b, far, load(bytes + 16));
    c = fold(c, far, load(bytes + 32));
    d = fold(d, far, load(bytes + 48));
  }
  const __m128i near = constants(kFront128, kBack128);
  a = fold(fold(fold(a, near, b), near, c), near, d);
  std::byte left[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(left), a);
  return by_tables(bytes, size, by_tables(left, 16, kEmptyRegister));
}

[[gnu::target("avx512f,vpclmulqdq,pclmul,sse4.1")]] inline __m512i load_wide(
    const std::byte* from) {
  return _mm512_loadu_si512(from);
}

[[gnu::target("avx512f,vpclmulqdq,pclmul,sse4.1")]] inline __m512i fold_wide(
    __m512i value, __m512i factors, __m512i onto) {
  // 0x96: the exclusive or of all three.
  return _mm512_ternarylogic_epi64(
      _mm512_clmulepi64_epi128(value, factors, 0x00),
      _mm512_clmulepi64_epi128(value, factors, 0x11), onto, 0x96);
}

[[gnu::target("avx512f,vpclmulqdq,pclmul,sse4.1")]] inline __m512i wide(
    std::uint64_t front, std::uint64_t back) {
  const auto f = static_cast<long long>(front);
  const auto b = static_cast<long long>(back);
  return _mm512_set_epi64(b, f, b, f, b, f, b, f);
}

// At least 256 bytes. The processor itself does not look beyond the page.
[[gnu::target("avx512f,vpclmulqdq,pclmul,sse4.1")]] std::uint32_t by_512(
    const std::byte* bytes, std::size_t size, std::uint32_t crc) {
  __m512i a = _mm512_xor_si512(
      load_wide(bytes),
      _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));
  __m512i b = load_wide(bytes + 64);
  __m512i c = load_wide(bytes + 128);
  __m512i d = load_wide(bytes + 192);
  constexpr std::size_t kAhead = 2048;
  const __m512i far = wide(kFront2048, kBack2048);
  for (bytes += 256, size -= 256; size >= 256; bytes += 256, size -= 256) {
    for (std::size_t i = 0; i < 256; i += 64)
      _mm_prefetch(reinterpret_cast<const char*>(bytes + kAhead + i),
                   _MM_HINT_T0);
    a = fold_wide(a, far, load_wide(bytes));
    b = fold_wide(b, far, load_wide(bytes + 64));
    c = fold_wide(c, far, load_wide(bytes + 128));
    d = fold_wide(d, far, load_wide(bytes + 192));
  }
  // The strands, end to end, leave what all bytes before them leave.
  alignas(64) std::byte left[256];
  _mm512_store_si512(left, a);
  _mm512_store_si512(left + 64, b);
  _mm512_store_si512(left + 128, c);
  _mm512_store_si512(left + 192, d);
  return by_tables(bytes, size, by_128(left, sizeof(left), kEmptyRegister));
}

enum class Width : std::uint8_t { kTables, k128, k512 };

Width widest() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("pclmul") == 0 ||
      __builtin_cpu_supports("sse4.1") == 0)
    return Width::kTables;
  return __builtin_cpu_supports("avx512f") != 0 &&
                 __builtin_cpu_supports("vpclmulqdq") != 0
             ? Width::k512
             : Width::k128;
}

}  // namespace

std::uint32_t crc32_of(Bytes bytes, std::uint32_t crc) {
  static const Width width = widest();
  if (width == Width::k512 && bytes.size() >= 512)
    return by_512(bytes.data(), bytes.size(), crc);
  if (width != Width::kTables && bytes.size() >= 128)
    return by_128(bytes.data(), bytes.size(), crc);
  return by_tables(bytes.data(), bytes.size(), crc);
}

std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second,
                           std::uint64_t size) {
  return static_cast<std::uint32_t>(
      ::crc32_combine(first, second, static_cast<z_off_t>(size)));
}

}  // namespace postflight
