#include "report/checkpoint/float_column.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;

constexpr FloatPrecision kHalf = {11, -14, 3};
constexpr FloatPrecision kSingle = {24, -126, 6};
constexpr FloatPrecision kDouble;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Printed {
  double value;
  std::string text;
};

// As numpy 2.5 prints its scalars.
TEST(FloatText, IsThatOfNumpysScalars) {
  for (const auto& [value, text] :
       std::vector<Printed>{{-0.0, "-0.0"},
                            {0.0999755859375, "0.1"},
                            {0.00010001659393310547, "0.0001"},
                            {1.0013580322265625e-05, "1e-05"},
                            {123, "123.0"},
                            {1234, "1.234e+03"},
                            {12344, "1.2344e+04"},
                            {3.140625, "3.14"},
                            {65504, "6.55e+04"},
                            {6.103515625e-05, "6.104e-05"},
                            {0.333251953125, "0.3333"},
                            {33.34375, "33.34"},
                            {10000, "1e+04"}})
    EXPECT_EQ(float_text(value, kHalf), text);
  for (const auto& [value, text] :
       std::vector<Printed>{{0, "0.0"},
                            {0.0001F, "1e-04"},
                            {123456, "123456.0"},
                            {1234567, "1.234567e+06"},
                            {12345678, "1.2345678e+07"},
                            {1e8, "1e+08"},
                            {3.14159265F, "3.1415927"},
                            {6.103515625e-05, "6.1035156e-05"},
                            {33.3333333F, "33.333332"},
                            {99999.9F, "99999.9"}})
    EXPECT_EQ(float_text(value, kSingle), text);
  for (const auto& [value, text] :
       std::vector<Printed>{{0.0001, "0.0001"},
                            {1e-05, "1e-05"},
                            {12345678, "12345678.0"},
                            {1e15, "1000000000000000.0"},
                            {1e16, "1e+16"},
                            {-1e-300, "-1e-300"},
                            {100.0 / 3, "33.333333333333336"},
                            {-kInfinity, "-inf"},
                            {kNan, "nan"}})
    EXPECT_EQ(float_text(value, kDouble), text);
}

TEST(ComplexText, IsThatOfNumpysScalars) {
  EXPECT_EQ(complex_text(0, 0, kDouble), "0j");
  EXPECT_EQ(complex_text(1, 0, kDouble), "(1+0j)");
  EXPECT_EQ(complex_text(-0.0, -1, kDouble), "(-0-1j)");
  EXPECT_EQ(complex_text(1e10, 1e-10, kDouble), "(10000000000+1e-10j)");
  EXPECT_EQ(complex_text(1e8, 1, kSingle), "(1e+08+1j)");
  EXPECT_EQ(complex_text(kNan, kInfinity, kDouble), "(nan+infj)");
}

std::vector<std::string> texts(
    const std::vector<double>& values, const FloatPrecision& precision,
    FloatColumn::Sign sign = FloatColumn::Sign::kMinusOnly) {
  const FloatColumn column(values, precision, sign);
  std::vector<std::string> all;
  for (const double value : values)
    all.push_back(column.text(value));
  return all;
}

TEST(FloatColumn, PutsPointsBelowEachOther) {
  EXPECT_THAT(texts({1.5, -22, 0.125}, kDouble),
              ElementsAre("  1.5  ", "-22.   ", "  0.125"));
  EXPECT_THAT(texts({1, 22}, kDouble, FloatColumn::Sign::kAlways),
              ElementsAre(" +1.", "+22."));
  EXPECT_THAT(texts({1.0 / 3, 2}, kDouble),
              ElementsAre("0.33333333", "2.        "));
}

TEST(FloatColumn, WritesExponentsWhereNumbersAreFarApart) {
  EXPECT_THAT(texts({1, 1000}, kDouble), ElementsAre("   1.", "1000."));
  EXPECT_THAT(texts({1, 1001}, kDouble), ElementsAre("1.000e+00", "1.001e+03"));
  EXPECT_THAT(texts({0, 1e-30, -0.0}, kDouble),
              ElementsAre(" 0.e+00", " 1.e-30", "-0.e+00"));
  EXPECT_THAT(texts({1e-200, 1}, kDouble), ElementsAre("1.e-200", "1.e+000"));
  // The shortest digits of the first are fewer, so true ones follow.
  EXPECT_THAT(texts({8.585979e-06F, 4.3887844e-06F}, kSingle),
              ElementsAre("8.5859792e-06", "4.3887844e-06"));
}

TEST(FloatColumn, WritesExponentsSoonerWhereThereAreFewerDigits) {
  EXPECT_THAT(texts({1e7}, kDouble), ElementsAre("10000000."));
  EXPECT_THAT(texts({1e7}, kSingle), ElementsAre("1.e+07"));
  EXPECT_THAT(texts({1e5}, kSingle), ElementsAre("100000."));
  EXPECT_THAT(texts({1000}, kHalf), ElementsAre("1.e+03"));
  // It is the float32 nearest to 0.0001, so not below it.
  EXPECT_THAT(texts({0.0001F}, kSingle), ElementsAre("0.0001"));
}

TEST(FloatColumn, LeavesRoomForWhatIsNotFinite) {
  EXPECT_THAT(texts({kNan, 1}, kDouble), ElementsAre("nan", " 1."));
  EXPECT_THAT(texts({-kInfinity, 1.25}, kDouble), ElementsAre("-inf", "1.25"));
  EXPECT_THAT(texts({-kInfinity, kInfinity, kNan}, kDouble),
              ElementsAre("-inf", " inf", " nan"));
  EXPECT_THAT(texts({kNan, 1e20}, kDouble), ElementsAre("   nan", "1.e+20"));
  EXPECT_THAT(texts({kNan, 1}, kDouble, FloatColumn::Sign::kAlways),
              ElementsAre("+nan", " +1."));
}

}  // namespace
}  // namespace postflight
