#include "checkpoint/tensor/statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
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

double float8(Numeric numeric, std::uint32_t bits) {
  switch (numeric) {
    case Numeric::kFloat8E4m3fn:
      return small_float(bits, {4, 3, 7, false, false});
    case Numeric::kFloat8E4m3fnuz:
      return small_float(bits, {4, 3, 8, false, true});
    case Numeric::kFloat8E5m2:
      return small_float(bits, {5, 2, 15, true, false});
    case Numeric::kFloat8E5m2fnuz:
      return small_float(bits, {5, 2, 16, false, true});
    default:  // kFloat8E8m0fnu: an exponent alone
      return bits == 255 ? std::numeric_limits<double>::quiet_NaN()
                         : std::ldexp(1.0, static_cast<int>(bits) - 127);
  }
}

double real(std::size_t size, const std::byte* at) {
  if (size == 2)
    return half(at);
  if (size == 4)
    return std::bit_cast<float>(load_little_endian<std::uint32_t>(at));
  return std::bit_cast<double>(load_little_endian<std::uint64_t>(at));
}

// Not std::hypot, whose symbol in glibc is newer than the oldest we run on.
double magnitude(double a, double b) {
  const double large = std::max(std::abs(a), std::abs(b));
  const double small = std::min(std::abs(a), std::abs(b));
  if (large == 0 || !std::isfinite(large) || std::isnan(small))
    return large + small;
  const double ratio = small / large;
  return large * std::sqrt(1 + ratio * ratio);
}

}  // namespace

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
    case Numeric::kFloat8E4m3fn:
    case Numeric::kFloat8E4m3fnuz:
    case Numeric::kFloat8E5m2:
    case Numeric::kFloat8E5m2fnuz:
    case Numeric::kFloat8E8m0fnu:
      return float8(dtype.numeric, std::to_integer<std::uint32_t>(*at));
    case Numeric::kComplex:
      return magnitude(real(dtype.size / 2, at),
                       real(dtype.size / 2, at + dtype.size / 2));
    default:
      return std::nullopt;
  }
}

namespace {

// The smallest number of full precision; 0 for dtypes without denormal ones.
double smallest_normal(const Dtype& dtype) {
  constexpr double kFloat16 = 0x1p-14;
  constexpr double kFloat32 = 0x1p-126;
  constexpr double kFloat64 = 0x1p-1022;
  switch (dtype.numeric) {
    case Numeric::kFloat:
    case Numeric::kComplex: {
      const std::uint32_t size =
          dtype.numeric == Numeric::kComplex ? dtype.size / 2 : dtype.size;
      return size == 2 ? kFloat16 : size == 4 ? kFloat32 : kFloat64;
    }
    case Numeric::kBfloat16:
      return kFloat32;
    case Numeric::kFloat8E4m3fn:
      return 0x1p-6;
    case Numeric::kFloat8E4m3fnuz:
      return 0x1p-7;
    case Numeric::kFloat8E5m2:
      return 0x1p-14;
    case Numeric::kFloat8E5m2fnuz:
      return 0x1p-15;
    default:
      return 0;
  }
}

// A sum in several lanes, so that it can be vectorised.
template <typename Real, typename Term>
Real sum_of(std::span<const double> values, Term term) {
  constexpr std::size_t kLanes = 8;
  std::array<Real, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += term(static_cast<Real>(values[i + lane]));
  for (; i < values.size(); ++i)
    lanes[0] += term(static_cast<Real>(values[i]));
  return std::accumulate(lanes.begin(), lanes.end(), Real{0});
}

// Mean and deviation of numbers that come in pieces.
class Moments {
 public:
  // `largest` bounds the magnitudes in the piece.
  void add(std::span<const double> piece, double largest) {
    // The squares of larger doubles may overflow; those of long doubles do not.
    constexpr double kSquarable = 1e140;
    if (piece.empty())
      return;
    if (largest < kSquarable)
      add_as<double>(piece);
    else
      add_as<long double>(piece);
  }

  bool empty() const { return count_ == 0; }
  double mean() const { return static_cast<double>(mean_); }
  double deviation() const {
    return static_cast<double>(std::sqrt(squares_ / count_));
  }

 private:
  template <typename Real>
  void add_as(std::span<const double> piece) {
    const auto size = static_cast<long double>(piece.size());
    const Real mean = sum_of<Real>(piece, [](Real value) { return value; }) /
                      static_cast<Real>(size);
    const Real squares = sum_of<Real>(
        piece, [mean](Real value) { return (value - mean) * (value - mean); });
    // Chan's formula for combining two sums of squared deviations.
    const long double between = mean - mean_;
    const long double count = count_ + size;
    mean_ += between * (size / count);
    squares_ += squares + between * between * (count_ * size / count);
    count_ = count;
  }

  long double count_ = 0;
  long double mean_ = 0;
  long double squares_ = 0;  // the sum of squared distances from the mean
};

// Blocks of so many elements are counted together; they fit the L1 cache.
constexpr std::size_t kBlock = 2048;

// What there is in a block of floats.
struct BlockCounts {
  std::uint64_t special = 0;  // NaN and infinities
  std::uint64_t zero = 0;
  std::uint64_t small = 0;  // below full precision; zeros, too
  double least = 0;
  double largest = 0;
};

// Floats whose bits are the upper ones of float32: that, or bfloat16. Loops of
// a known length over integers, which compilers vectorise: a float's bits are
// ordered as its number is once those of negative ones are turned around.
template <typename Bits>
BlockCounts count_block(const std::byte* from, std::span<double, kBlock> to) {
  constexpr std::int32_t kMagnitude = 0x7fffffff;
  constexpr std::int32_t kInfinity = 0x7f800000;
  constexpr std::int32_t kNormal = 0x00800000;
  std::array<std::int32_t, kBlock> bits;
  for (std::size_t i = 0; i < kBlock; ++i)
    bits[i] = static_cast<std::int32_t>(
        std::uint32_t{load_little_endian<Bits>(from + i * sizeof(Bits))}
        << (32 - 8 * sizeof(Bits)));
  std::int32_t special = 0;
  std::int32_t zero = 0;
  std::int32_t small = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::int32_t magnitude = bits[i] & kMagnitude;
    special += magnitude >= kInfinity ? 1 : 0;
    zero += magnitude == 0 ? 1 : 0;
    small += magnitude < kNormal ? 1 : 0;
  }
  std::int32_t least = std::numeric_limits<std::int32_t>::max();
  std::int32_t largest = std::numeric_limits<std::int32_t>::min();
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::int32_t ordered = bits[i] ^ (bits[i] >> 31 & kMagnitude);
    least = ordered < least ? ordered : least;
    largest = ordered > largest ? ordered : largest;
  }
  for (std::size_t i = 0; i < kBlock; ++i)
    to[i] = std::bit_cast<float>(bits[i]);
  const auto number = [](std::int32_t ordered) {
    return std::bit_cast<float>(ordered ^ (ordered >> 31 & kMagnitude));
  };
  return {static_cast<std::uint64_t>(special), static_cast<std::uint64_t>(zero),
          static_cast<std::uint64_t>(small), number(least), number(largest)};
}

class Counter {
 public:
  explicit Counter(const Dtype& dtype)
      : dtype_(dtype), smallest_(smallest_normal(dtype)) {}

  void count(Bytes piece) {
    const std::size_t size = dtype_.size;
    finite_.resize(piece.size() / size);
    if (finite_.size() == kBlock && count_whole(piece))
      return;
    std::size_t finite = 0;
    std::uint64_t zero = 0;
    std::uint64_t small = 0;  // zeros, too
    double least = std::numeric_limits<double>::infinity();
    double largest = -least;
    for (std::size_t at = 0; at + size <= piece.size(); at += size) {
      const auto value = element_value(dtype_, &piece[at]);
      if (!value)
        continue;
      if (std::isfinite(*value)) {
        zero += *value == 0 ? 1 : 0;
        small += std::abs(*value) < smallest_ ? 1 : 0;
        least = std::min(least, *value);
        largest = std::max(largest, *value);
        finite_[finite++] = *value;
      } else if (std::isnan(*value)) {
        ++found_.nan;
      } else {
        ++found_.infinite;
      }
    }
    found_.elements += piece.size() / size;
    found_.zero += zero;
    found_.denormal += smallest_ > 0 ? small - zero : 0;
    finite_.resize(finite);
    if (finite_.empty())
      return;
    moments_.add(finite_, std::max(std::abs(least), std::abs(largest)));
    if (size == 8 && dtype_.numeric == Numeric::kSigned)
      stretch_by<std::int64_t>(piece);
    else if (size == 8 && dtype_.numeric == Numeric::kUnsigned)
      stretch_by<std::uint64_t>(piece);
    else
      stretch(least, largest);
  }

  // As if each element occurred so many times.
  TensorStatistics found(std::uint64_t times) {
    for (std::uint64_t* const counted :
         {&found_.elements, &found_.nan, &found_.infinite, &found_.zero,
          &found_.denormal})
      *counted *= times;
    if (!moments_.empty()) {
      found_.mean = moments_.mean();
      // Exactly 0 for equal numbers, without rounding errors.
      found_.deviation =
          found_.minimum == found_.maximum ? 0 : moments_.deviation();
    }
    return found_;
  }

 private:
  // A block of finite floats; false if it is something else.
  bool count_whole(Bytes piece) {
    const bool single = dtype_.numeric == Numeric::kFloat && dtype_.size == 4;
    if (!single && dtype_.numeric != Numeric::kBfloat16)
      return false;
    const std::span<double, kBlock> to(finite_.data(), kBlock);
    const BlockCounts counts =
        single ? count_block<std::uint32_t>(piece.data(), to)
               : count_block<std::uint16_t>(piece.data(), to);
    if (counts.special > 0)
      return false;
    found_.elements += kBlock;
    found_.zero += counts.zero;
    found_.denormal += counts.small - counts.zero;
    moments_.add(finite_,
                 std::max(std::abs(counts.least), std::abs(counts.largest)));
    stretch(counts.least, counts.largest);
    return true;
  }

  // A double cannot represent all 64-bit integers.
  template <typename Integer>
  void stretch_by(Bytes piece) {
    for (std::size_t at = 0; at + sizeof(Integer) <= piece.size();
         at += sizeof(Integer)) {
      const auto value = load_little_endian<Integer>(&piece[at]);
      stretch(value, value);
    }
  }

  template <typename Number>
  void stretch(Number least, Number largest) {
    if (!found_.minimum) {
      found_.minimum = least;
      found_.maximum = largest;
    }
    Number& minimum = *std::get_if<Number>(&*found_.minimum);
    Number& maximum = *std::get_if<Number>(&*found_.maximum);
    minimum = std::min(minimum, least);
    maximum = std::max(maximum, largest);
  }

  const Dtype dtype_;
  const double smallest_;
  TensorStatistics found_;
  Moments moments_;
  std::vector<double> finite_;
};

}  // namespace

Result<TensorStatistics> statistics_of(const TensorReader& reader,
                                       const Tensor& repeated) {
  // Repeated elements are read once.
  Tensor tensor = repeated;
  std::vector<std::int64_t> shape(tensor.shape.begin(), tensor.shape.end());
  std::uint64_t times = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (tensor.stride[i] == 0 && shape[i] > 1)
      times *= static_cast<std::uint64_t>(std::exchange(shape[i], 1));
  tensor.shape = shape;
  Counter counter(tensor.dtype);
  const std::size_t block = kBlock * tensor.dtype.size;
  TRY(reader.stream(tensor, 1 << 20, [&](Bytes piece) -> Result<> {
    for (; piece.size() >= block; piece = piece.subspan(block))
      counter.count(piece.first(block));
    counter.count(piece);
    return {};
  }));
  return counter.found(times);
}

}  // namespace postflight
