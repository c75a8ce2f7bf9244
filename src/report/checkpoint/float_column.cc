#include "report/checkpoint/float_column.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace postflight {
namespace {

constexpr int kMostDecimals = 8;

// Rounds to the given precision.
double rounded(double value, const FloatPrecision& to) {
  if (value == 0 || !std::isfinite(value) || to.bits == 53)
    return value;
  const int exponent = std::max(std::ilogb(value), to.least_exponent);
  const double unit = std::ldexp(1.0, exponent - to.bits + 1);
  return std::nearbyint(value / unit) * unit;
}

// d.ddd times ten to the exponent, without a sign.
struct Digits {
  std::string digits;
  int exponent = 0;
};

Digits parse_scientific(std::string_view text) {
  Digits parsed;
  const std::size_t mark = text.find('e');
  for (const char c : text.substr(0, mark))
    if (c != '.')
      parsed.digits += c;
  parsed.exponent = std::atoi(std::string(text.substr(mark + 1)).c_str());
  return parsed;
}

// The fewest digits that identify a number of that precision.
Digits shortest(double value, const FloatPrecision& precision) {
  const double size = std::fabs(value);
  char room[32];
  if (precision.bits == 53 || precision.bits == 24) {
    const auto end =
        precision.bits == 53
            ? std::to_chars(room, std::end(room), size,
                            std::chars_format::scientific)
            : std::to_chars(room, std::end(room), static_cast<float>(size),
                            std::chars_format::scientific);
    return parse_scientific({room, end.ptr});
  }
  constexpr int kEnoughDigits = 9;
  for (int digits = 1;; ++digits) {
    const std::string text = fmt::format("{:.{}e}", size, digits - 1);
    if (digits == kEnoughDigits ||
        rounded(std::strtod(text.c_str(), nullptr), precision) == size)
      return parse_scientific(text);
  }
}

void trim_zeros(std::string& text) {
  while (text.ends_with('0'))
    text.pop_back();
}

// Without an exponent or a sign: "12.5", "3.", with up to `most` decimals.
std::string plain_digits(double value, const FloatPrecision& precision,
                         int most) {
  const Digits found = shortest(value, precision);
  const int count = static_cast<int>(found.digits.size());
  std::string text;
  if (count - 1 - found.exponent > most) {
    text = fmt::format("{:.{}f}", std::fabs(value), most);
  } else if (found.exponent < 0) {
    text.assign("0.").append(static_cast<std::size_t>(-found.exponent - 1),
                             '0');
    text += found.digits;
  } else {
    text = found.digits;
    text.resize(static_cast<std::size_t>(std::max(count, found.exponent + 1)),
                '0');
    text.insert(static_cast<std::size_t>(found.exponent) + 1, ".");
  }
  trim_zeros(text);
  return text;
}

// "1.5" of 1.5e+08, with up to `most` decimals.
std::string significand(double value, const FloatPrecision& precision,
                        int most) {
  Digits found = shortest(value, precision);
  if (static_cast<int>(found.digits.size()) - 1 > most)
    found = parse_scientific(fmt::format("{:.{}e}", std::fabs(value), most));
  found.digits.insert(1, ".");
  trim_zeros(found.digits);
  return found.digits;
}

std::string exponent_text(int exponent, std::size_t digits) {
  return fmt::format("e{}{:0{}}", exponent < 0 ? '-' : '+', std::abs(exponent),
                     digits);
}

std::size_t digits_of(int exponent) {
  return std::abs(exponent) >= 100 ? 3 : 2;
}

// A number by itself has all of its digits.
constexpr int kAllDecimals = 400;

std::string alone(double value, const FloatPrecision& precision) {
  if (std::isnan(value))
    return "nan";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value))
    return sign + "inf";
  const double size = std::fabs(value);
  const double large =
      precision.bits == 53 ? 1e16 : std::pow(10.0, precision.decimals);
  std::string text;
  if (size == 0 || (size >= 1e-4 && size < large)) {
    text = plain_digits(value, precision, kAllDecimals);
  } else {
    const int exponent = shortest(value, precision).exponent;
    text = significand(value, precision, kAllDecimals);
    if (text.ends_with('.'))
      text.pop_back();
    text += exponent_text(exponent, digits_of(exponent));
  }
  return sign + text;
}

}  // namespace

FloatPrecision FloatPrecision::of(const Dtype& dtype) {
  const std::uint32_t size =
      dtype.numeric == Numeric::kComplex ? dtype.size / 2 : dtype.size;
  // numpy lacks bfloat16 and float8; they switch to exponents as float32 does.
  switch (dtype.numeric) {
    case Numeric::kBfloat16:
      return {8, -126, 6};
    case Numeric::kFloat8E4m3fn:
      return {4, -6, 6};
    case Numeric::kFloat8E4m3fnuz:
      return {4, -7, 6};
    case Numeric::kFloat8E5m2:
      return {3, -14, 6};
    case Numeric::kFloat8E5m2fnuz:
      return {3, -15, 6};
    case Numeric::kFloat8E8m0fnu:
      return {1, -127, 6};
    default:
      break;
  }
  if (size == 2)
    return {11, -14, 3};
  if (size == 4)
    return {24, -126, 6};
  return {};
}

FloatColumn::FloatColumn(std::span<const double> values,
                         const FloatPrecision& precision, Sign sign)
    : precision_(precision), sign_(sign) {
  double largest = 0;
  double smallest = 0;
  for (const double value : values) {
    const double size = std::fabs(value);
    if (!std::isfinite(size) || size == 0)
      continue;
    largest = std::max(largest, size);
    smallest = smallest == 0 ? size : std::min(smallest, size);
  }
  const double large = std::pow(10.0, std::min(8, precision.decimals));
  scientific_ =
      largest > 0 && (largest >= large || smallest < rounded(1e-4, precision) ||
                      rounded(largest / smallest, precision) > 1000);
  widen_for(values);
}

void FloatColumn::widen_for(std::span<const double> values) {
  bool finite = true;
  bool below = sign_ == Sign::kAlways;  // an infinity has a sign
  for (const double value : values) {
    if (!std::isfinite(value)) {
      finite = false;
      below = below || (std::isinf(value) && value < 0);
      continue;
    }
    std::string text;
    if (scientific_) {
      text = significand(value, precision_, kMostDecimals);
      exponent_ =
          std::max(exponent_, digits_of(shortest(value, precision_).exponent));
    } else {
      text = plain_digits(value, precision_, kMostDecimals);
    }
    const std::size_t point = text.find('.');
    before_ = std::max(before_, sign_of(value).size() + point);
    behind_ = std::max(behind_, text.size() - point - 1);
  }
  if (finite)
    return;
  // "-inf" also takes the columns of the point and the decimals.
  const std::size_t behind = 1 + behind_ + (scientific_ ? exponent_ + 2 : 0);
  const std::size_t longest = 3 + (below ? 1 : 0);
  before_ = std::max(before_, longest > behind ? longest - behind : 0);
}

std::string FloatColumn::sign_of(double value) const {
  return std::signbit(value) && !std::isnan(value) ? "-"
         : sign_ == Sign::kAlways                  ? "+"
                                                   : "";
}

std::string FloatColumn::text(double value) const {
  if (std::isfinite(value))
    return finite_text(value);
  const std::string text = sign_of(value) + (std::isnan(value) ? "nan" : "inf");
  const std::size_t width =
      before_ + 1 + behind_ + (scientific_ ? exponent_ + 2 : 0);
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string FloatColumn::finite_text(double value) const {
  std::string text;
  if (scientific_) {
    // All have the same number of digits, exact beyond those that are needed.
    text = fmt::format("{:.{}e}", std::fabs(value), behind_);
    const Digits found = parse_scientific(text);
    text = found.digits;
    text.insert(1, ".");
    text += exponent_text(found.exponent, exponent_);
  } else {
    text = plain_digits(value, precision_, kMostDecimals);
    text.append(behind_ + 1 - (text.size() - text.find('.')), ' ');
  }
  const std::string sign = sign_of(value);
  const std::size_t before = sign.size() + text.find('.');
  return std::string(before_ - std::min(before_, before), ' ') + sign + text;
}

std::string float_text(double value, const FloatPrecision& precision) {
  std::string text = alone(value, precision);
  if (text.ends_with('.'))
    text += '0';
  return text;
}

std::string complex_text(double real, double imaginary,
                         const FloatPrecision& precision) {
  const auto part = [&precision](double value) {
    std::string text = alone(value, precision);
    if (text.ends_with('.'))
      text.pop_back();
    return text;
  };
  const std::string second = part(imaginary) + "j";
  if (real == 0 && !std::signbit(real))
    return second;
  return fmt::format("({}{}{})", part(real), second.starts_with('-') ? "" : "+",
                     second);
}

}  // namespace postflight
