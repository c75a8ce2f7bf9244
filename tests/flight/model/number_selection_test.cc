#include "flight/model/number_selection.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace postflight {
namespace {

std::string shown(const char* text) {
  const Result<NumberSelection> selection = NumberSelection::parse(text);
  if (!selection)
    return std::string(selection.error().message());
  std::string numbers;
  for (std::int64_t i = 0; i < 20; ++i)
    if (selection->has(i))
      numbers += std::to_string(i) + " ";
  return numbers;
}

TEST(NumberSelection, TakesRangesAndStrides) {
  EXPECT_EQ(shown("3"), "3 ");
  EXPECT_EQ(shown("0-2,5,8-16:4"), "0 1 2 5 8 12 16 ");
}

TEST(NumberSelection, IsOpenToOneSide) {
  EXPECT_EQ(shown("-2"), "0 1 2 ");
  EXPECT_EQ(shown("17-"), "17 18 19 ");
}

TEST(NumberSelection, SelectsAllWhenNothingIsNamed) {
  const Result<NumberSelection> all = NumberSelection::parse("");
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->all());
  EXPECT_TRUE(all->has(std::numeric_limits<std::int64_t>::min()));
}

TEST(NumberSelection, RefusesWhatIsNoRange) {
  for (const std::string text : {"x", "1-x", "3-1", "1:0", "1:", "-", "--",
                                 "1-2-3", ",", "99999999999999999999"})
    EXPECT_EQ(shown(text.c_str()),
              "'" + (text == "," ? "" : text) +
                  "' is no range of numbers; write 0-3, 0-1016:8 or 5,7")
        << text;
}

TEST(NumberSelection, CostsNothingForHugeRanges) {
  EXPECT_EQ(shown("2-9223372036854775807:7"), "2 9 16 ");
}

}  // namespace
}  // namespace postflight
