#include "base/glob.h"

#include <string>

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(Glob, MatchesAllOfTheText) {
  EXPECT_TRUE(glob_matches("dp_0", "dp_0"));
  EXPECT_FALSE(glob_matches("dp", "dp_0"));
  EXPECT_FALSE(glob_matches("dp_0", "dp"));
  EXPECT_TRUE(glob_matches("", ""));
  EXPECT_FALSE(glob_matches("", "a"));
}

TEST(Glob, StarTakesAnyText) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("dp*", "dp"));
  EXPECT_TRUE(glob_matches("*reduce*", "nccl:all_reduce_barrier"));
  EXPECT_TRUE(glob_matches("*a*b", "aabab"));
  EXPECT_FALSE(glob_matches("*a*b", "aaba"));
}

TEST(Glob, QuestionMarkTakesOneByte) {
  EXPECT_TRUE(glob_matches("dp_?", "dp_7"));
  EXPECT_FALSE(glob_matches("dp_?", "dp_"));
  EXPECT_FALSE(glob_matches("dp_?", "dp_17"));
}

TEST(Glob, SetsTakeOneOfTheirMembers) {
  EXPECT_TRUE(glob_matches("dp_[0-3]", "dp_2"));
  EXPECT_FALSE(glob_matches("dp_[0-3]", "dp_4"));
  EXPECT_TRUE(glob_matches("dp_[!0-3]", "dp_4"));
  EXPECT_TRUE(glob_matches("[]a]", "]"));
  EXPECT_TRUE(glob_matches("[a-]", "-"));
}

TEST(Glob, AnOpenBracketMeansItself) {
  EXPECT_TRUE(glob_matches("[0", "[0"));
  EXPECT_TRUE(glob_matches("[", "["));
  EXPECT_FALSE(glob_matches("[0-9", "5"));
}

TEST(Glob, BracketsAndStarsCanBeWritten) {
  EXPECT_TRUE(glob_matches("opt[[]0]*", "opt[0].m"));
  EXPECT_TRUE(glob_matches(R"(opt\[0].m)", "opt[0].m"));
  EXPECT_FALSE(glob_matches(R"(opt\[0].m)", "opt0.m"));
  EXPECT_TRUE(glob_matches(R"(\*)", "*"));
  EXPECT_FALSE(glob_matches(R"(\*)", "a"));
  EXPECT_TRUE(glob_matches(R"(a\\)", R"(a\)"));
  EXPECT_TRUE(glob_matches(R"(a\)", R"(a\)"));
}

TEST(Glob, TakesNoLongerForManyStars) {
  std::string pattern;
  for (int i = 0; i < 50; ++i)
    pattern += "a*";
  EXPECT_FALSE(glob_matches(pattern + "b", std::string(20'000, 'a')));
}

}  // namespace
}  // namespace postflight
