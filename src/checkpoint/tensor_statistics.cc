#include "checkpoint/tensor_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace postflight {
namespace {

// A small float of any layout: `exponent` and `mantissa` bits wide.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool infinities;              // the highest exponent is infinity and NaN
  bool only_negative_0_is_nan;  // "fnuz"
};

double small_float(std::uint32_t bits, const SmallFloat& layout) {
  const int width = layout.exponent_bits + layout.mantissa_bits;
  const bool negative = (bits >> width & 1) != 0;
  const std::uint32_t exponent =
      bits >> layout.mantissa_bits & ((1U << layout.exponent_bits) - 1);
  const std::uint32_t mantissa = bits & ((1U << layout.mantissa_bits) - 1);
  const std::uint32_t highest = (1U << layout.exponent_bits) - 1;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (layout.only_negative_0_is_nan) {
    if (negative && exponent == 0 && mantissa == 0)
      return kNan;
  } else if (exponent == highest) {
    if (layout.infinities)
      return mantissa != 0 ? kNan
                           : (negative ? -1 : 1) *
                                 std::numeric_limits<double>::infinity();
    if (mantissa == (1U << layout.mantissa_bits) - 1)
      return kNan;
  }
  const double fraction =
      std::ldexp(static_cast<double>(mantissa), -layout.mantissa_bits);
  const double value =
      exponent == 0
          ? std::ldexp(fraction, 1 - layout.bias)
          : std::ldexp(1 + fraction, static_cast<int>(exponent) - layout.bias);
  return negative ? -value : value;
}

double half(const std::byte* at) {
  return small_float(load_little_endian<std::uint16_t>(at),
                     {5, 10, 15, true, false});
}

double float8(std::string_view name, const std::byte* at) {
  const auto bits = std::to_integer<std::uint32_t>(*at);
  if (name == "float8_e8m0fnu")
    return bits == 255 ? std::numeric_limits<double>::quiet_NaN()
                       : std::ldexp(1.0, static_cast<int>(bits) - 127);
  if (name == "float8_e5m2")
    return small_float(bits, {5, 2, 15, true, false});
  if (name == "float8_e4m3fn")
    return small_float(bits, {4, 3, 7, false, false});
  if (name == "float8_e5m2fnuz")
    return small_float(bits, {5, 2, 16, false, true});
  return small_float(bits, {4, 3, 8, false, true});
}

double real(std::size_t size, const std::byte* at) {
  if (size == 2)
    return half(at);
  if (size == 4)
    return std::bit_cast<float>(load_little_endian<std::uint32_t>(at));
  return std::bit_cast<double>(load_little_endian<std::uint64_t>(at));
}

}  // namespace

// std::hypot would do, but glibc's is newer than the oldest that we run on.
double magnitude(double a, double b) {
  const double large = std::max(std::abs(a), std::abs(b));
  const double small = std::min(std::abs(a), std::abs(b));
  if (large == 0 || !std::isfinite(large) || std::isnan(small))
    return large + small;
  const double ratio = small / large;
  return large * std::sqrt(1 + ratio * ratio);
}

std::optional<double> element_value(const Dtype& dtype, const std::byte* at) {
  switch (dtype.numeric) {
    case Numeric::kBoolean:
      return *at != std::byte{0} ? 1 : 0;
    case Numeric::kSigned:
      return dtype.size == 1   ? load_little_endian<std::int8_t>(at)
             : dtype.size == 2 ? load_little_endian<std::int16_t>(at)
             : dtype.size == 4
                 ? load_little_endian<std::int32_t>(at)
                 : static_cast<double>(load_little_endian<std::int64_t>(at));
    case Numeric::kUnsigned:
      return dtype.size == 1   ? load_little_endian<std::uint8_t>(at)
             : dtype.size == 2 ? load_little_endian<std::uint16_t>(at)
             : dtype.size == 4
                 ? load_little_endian<std::uint32_t>(at)
                 : static_cast<double>(load_little_endian<std::uint64_t>(at));
    case Numeric::kFloat:
      return real(dtype.size, at);
    case Numeric::kBfloat16:
      return std::bit_cast<float>(
          static_cast<std::uint32_t>(load_little_endian<std::uint16_t>(at))
          << 16);
    case Numeric::kFloat8:
      return float8(dtype.name, at);
    case Numeric::kComplex:
      return magnitude(real(dtype.size / 2, at),
                       real(dtype.size / 2, at + dtype.size / 2));
    default:
      return std::nullopt;
  }
}

Result<TensorStatistics> statistics_of(const TensorReader& reader,
                                       const Tensor& repeated) {
  TensorStatistics found;
  // What is repeated need not be read again.
  Tensor tensor = repeated;
  std::vector<std::int64_t> shape(tensor.shape.begin(), tensor.shape.end());
  std::uint64_t times = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (tensor.stride[i] == 0 && shape[i] > 1)
      times *= static_cast<std::uint64_t>(std::exchange(shape[i], 1));
  tensor.shape = shape;
  double mean = 0;
  double squares = 0;  // Welford: the sum of squared distances from the mean
  std::uint64_t count = 0;
  const std::size_t size = tensor.dtype.size;
  TRY(reader.stream(tensor, 1 << 20, [&](Bytes piece) -> Result<> {
    for (std::size_t at = 0; at + size <= piece.size(); at += size) {
      const auto value = element_value(tensor.dtype, &piece[at]);
      ++found.elements;
      if (!value)
        continue;
      if (std::isnan(*value)) {
        ++found.nan;
        continue;
      }
      if (std::isinf(*value)) {
        ++found.infinite;
        continue;
      }
      found.zero += *value == 0 ? 1 : 0;
      found.minimum = std::min(found.minimum.value_or(*value), *value);
      found.maximum = std::max(found.maximum.value_or(*value), *value);
      ++count;
      const double distance = *value - mean;
      mean += distance / static_cast<double>(count);
      squares += distance * (*value - mean);
    }
    return {};
  }));
  for (std::uint64_t* const counted :
       {&found.elements, &found.nan, &found.infinite, &found.zero})
    *counted *= times;
  found.mean = mean;
  found.deviation =
      count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
  return found;
}

}  // namespace postflight
