#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/model/dtype.h"

namespace postflight {

// What determines how many digits distinguish a number from its neighbours.
struct FloatPrecision {
  int bits = 53;               // of the significand, with the implicit one
  int least_exponent = -1022;  // of a normal number
  int decimals = 15;           // that survive a round trip

  // Of a float, or of the parts of a complex number.
  static FloatPrecision of(const Dtype& dtype);
};

// Numbers as numpy prints an array of them: with the fewest digits that
// distinguish each from its neighbours, up to eight decimals; with exponents if
// they are large, small or far apart; and with aligned points.
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
  std::size_t before_ = 0;    // columns before the point, with the sign
  std::size_t behind_ = 0;    // decimals
  std::size_t exponent_ = 0;  // digits of the exponents, if there are any
};

// One number as numpy prints a scalar: 0.1, 1e+16.
std::string float_text(double value, const FloatPrecision& precision);
// (1+2j), 1j.
std::string complex_text(double real, double imaginary,
                         const FloatPrecision& precision);

}  // namespace postflight
