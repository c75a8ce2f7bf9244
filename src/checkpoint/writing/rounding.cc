#include "checkpoint/writing/rounding.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "checkpoint/tensor/statistics.h"

namespace postflight {
namespace {

constexpr std::uint32_t kSign = 0x80000000;
constexpr std::uint32_t kInfinity = 0x7f800000;

std::uint16_t to_bfloat16(float value) {
  if (std::isnan(value))
    return 0x7fc0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Rounds to a format of fewer bits: `exponent` and `mantissa` of them. Returns
// the magnitude, which may be beyond the largest finite number.
std::uint32_t round_magnitude(std::uint32_t bits, int exponent, int mantissa) {
  const int bias = (1 << (exponent - 1)) - 1;
  const int shift = 23 - mantissa;
  const std::uint32_t smallest_normal =
      static_cast<std::uint32_t>(127 - bias + 1) << 23;
  if (bits >= smallest_normal) {
    const std::uint32_t rounded =
        bits + ((1u << (shift - 1)) - 1) + (bits >> shift & 1);
    return (rounded >> shift) -
           (static_cast<std::uint32_t>(127 - bias) << mantissa);
  }
  // Subnormal: adding a power of two lets the hardware round, to even.
  const std::uint32_t magic = static_cast<std::uint32_t>(127 - bias + shift + 1)
                              << 23;
  const float sum = std::bit_cast<float>(bits) + std::bit_cast<float>(magic);
  return std::bit_cast<std::uint32_t>(sum) - magic;
}

std::uint16_t to_half(float value) {
  const auto all = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((all & kSign) >> 16);
  const std::uint32_t bits = all & ~kSign;
  if (bits > kInfinity)
    return static_cast<std::uint16_t>(sign | 0x7e00 | (bits >> 13 & 0x3ff));
  if (bits >= std::uint32_t{127 + 16} << 23)
    return static_cast<std::uint16_t>(sign | 0x7c00);
  return static_cast<std::uint16_t>(sign | round_magnitude(bits, 5, 10));
}

std::uint8_t to_e5m2(float value) {
  const auto all = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((all & kSign) >> 24);
  const std::uint32_t bits = all & ~kSign;
  if (bits > kInfinity)
    return static_cast<std::uint8_t>(sign | 0x7f);
  if (bits >= std::uint32_t{127 + 16} << 23)
    return static_cast<std::uint8_t>(sign | 0x7c);
  return static_cast<std::uint8_t>(sign | round_magnitude(bits, 5, 2));
}

std::uint8_t to_e4m3fn(float value) {
  const auto all = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((all & kSign) >> 24);
  const std::uint32_t bits = all & ~kSign;
  constexpr float kBeyond = 480;  // which would be the NaN
  if (bits >= std::bit_cast<std::uint32_t>(kBeyond))
    return static_cast<std::uint8_t>(sign | 0x7f);
  return static_cast<std::uint8_t>(sign | round_magnitude(bits, 4, 3));
}

template <class T>
void store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(value));
}

bool is_narrow(const Dtype& dtype, std::string_view name) {
  return dtype.name == name;
}

}  // namespace

bool can_convert(const Dtype& from, const Dtype& to) {
  const bool real = from.numeric == Numeric::kFloat ||
                    from.numeric == Numeric::kBfloat16 ||
                    is_float8(from.numeric);
  return real &&
         (to.numeric == Numeric::kFloat || to.numeric == Numeric::kBfloat16 ||
          to.numeric == Numeric::kFloat8E4m3fn ||
          to.numeric == Numeric::kFloat8E5m2);
}

void convert_elements(const Dtype& from_dtype, Bytes from,
                      const Dtype& to_dtype, std::span<std::byte> to) {
  const std::size_t count = from.size() / from_dtype.size;
  const bool single = is_narrow(from_dtype, "float32");
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* const at = from.data() + i * from_dtype.size;
    double wide = 0;
    float value = 0;
    if (single) {
      std::memcpy(&value, at, sizeof(value));
      wide = value;
    } else {
      wide = *element_value(from_dtype, at);
      value = static_cast<float>(wide);
    }
    std::byte* const out = to.data() + i * to_dtype.size;
    if (to_dtype.numeric == Numeric::kBfloat16)
      store(to_bfloat16(value), out);
    else if (to_dtype.numeric == Numeric::kFloat8E5m2)
      store(to_e5m2(value), out);
    else if (to_dtype.numeric == Numeric::kFloat8E4m3fn)
      store(to_e4m3fn(value), out);
    else if (to_dtype.size == sizeof(float))
      store(value, out);
    else if (to_dtype.size == sizeof(double))
      store(wide, out);
    else
      store(to_half(value), out);
  }
}

}  // namespace postflight
