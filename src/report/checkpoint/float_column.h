#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/model/dtype.h"

namespace postflight {

// What decides how many digits tell a number from its neighbours.
struct FloatPrecision {
  int bits = 53;               // of the significand, with the first
  int least_exponent = -1022;  // of a number that has all of them
  int decimals = 15;           // that it holds for certain

  // Of a float, or of the parts of a complex number.
  static FloatPrecision of(const Dtype& dtype);
};

// Numbers below each other as numpy prints an array of them: with the shortest
// digits that tell each from its neighbours, up to eight after the point; with
// exponents if they are large, small or far apart; and the points in one line.
class FloatColumn {
 public:
  enum class Sign : unsigned char { kMinusOnly, kAlways };

  FloatColumn(std::span<const double> values, const FloatPrecision& precision,
              Sign sign = Sign::kMinusOnly);

  // Of one of the values.
  std::string text(double value) const;

 private:
  std::string sign_of(double value) const;
  std::string finite_text(double value) const;
  void widen_for(std::span<const double> values);

  FloatPrecision precision_;
  Sign sign_;
  bool scientific_ = false;
  std::size_t before_ = 0;    // the point, the sign included
  std::size_t behind_ = 0;    // it: digits
  std::size_t exponent_ = 0;  // its digits, if there are exponents
};

// One number as numpy prints it alone: 0.1, 1e+16.
std::string float_text(double value, const FloatPrecision& precision);
// (1+2j), 1j.
std::string complex_text(double real, double imaginary,
                         const FloatPrecision& precision);

}  // namespace postflight
