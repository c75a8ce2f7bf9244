#include "base/suggestion.h"

#include <vector>

#include <gtest/gtest.h>

namespace postflight {
namespace {

const std::vector<std::string> kWords = {"pickle", "trace", "--json", "--all"};

TEST(Suggestion, FindsTheNearestWord) {
  EXPECT_EQ(suggestion("pikle", kWords), "pickle");
  EXPECT_EQ(suggestion("--jsn", kWords), "--json");
  EXPECT_EQ(suggestion("tra", kWords), "trace");
}

TEST(Suggestion, CompletesToTheShortestWord) {
  const std::vector<std::string> words = {"--rank-pattern", "--ranks",
                                          "--ranks-of"};
  EXPECT_EQ(suggestion("--rank", words), "--ranks");
}

TEST(Suggestion, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(suggestion("profile", kWords), std::nullopt);
  EXPECT_EQ(suggestion("", kWords), std::nullopt);
  EXPECT_EQ(suggestion(std::string(1000, 'x'), kWords), std::nullopt);
}

}  // namespace
}  // namespace postflight
