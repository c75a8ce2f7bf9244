#include "flight/model/rank_set.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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
                  "' is not a valid range: write 0-3, 0-1016:8 or 5,7")
        << text;
}

TEST(NumberSelection, CostsNothingForHugeRanges) {
  EXPECT_EQ(shown("2-9223372036854775807:7"), "2 9 16 ");
}

TEST(MemberList, ReadsWhatTheRecorderWrites) {
  EXPECT_THAT(*parse_member_list("[0, 1, 10]"),
              ElementsAre(Rank{0}, Rank{1}, Rank{10}));
  EXPECT_THAT(*parse_member_list("[3,1,3]"), ElementsAre(Rank{1}, Rank{3}));
  EXPECT_THAT(*parse_member_list("[]"), IsEmpty());
  EXPECT_FALSE(parse_member_list("[0, 1"));
  EXPECT_FALSE(parse_member_list("__import__('os')"));
  EXPECT_FALSE(parse_member_list("[-1]"));
}

TEST(RankSet, WritesRangesWithStrides) {
  const auto text = [](std::vector<int> values) {
    std::vector<Rank> ranks;
    for (const int value : values)
      ranks.push_back({value});
    return rank_set_text(ranks);
  };
  EXPECT_EQ(text({}), "none");
  EXPECT_EQ(text({5}), "5");
  EXPECT_EQ(text({0, 1, 2, 3, 6, 7}), "0-3,6-7");
  EXPECT_EQ(text({0, 8, 16, 24}), "0-24:8");
  EXPECT_EQ(text({0, 8}), "0,8");
  EXPECT_EQ(text({0, 1, 3, 5, 7}), "0-1,3-7:2");
}

}  // namespace
}  // namespace postflight
