#include "profile/phase/filter.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(PhaseFilter, KeepsEverythingByDefault) {
  const PhaseFilter filter;
  EXPECT_TRUE(filter.keeps_all());
  EXPECT_TRUE(filter.keeps("load", ""));
}

TEST(PhaseFilter, FindsAPhaseAnywhereInItsFullName) {
  const PhaseFilter filter = {.phase = *Pattern::compile("epoch/l")};
  EXPECT_FALSE(filter.keeps_all());
  EXPECT_TRUE(filter.keeps("run/epoch/load", ""));
  EXPECT_FALSE(filter.keeps("load", ""));
}

TEST(PhaseFilter, MatchesTheStartOfAFrameIdOrAllOfIt) {
  PhaseFilter filter = {.frame = *Pattern::compile("1/0")};
  EXPECT_TRUE(filter.keeps("", "1/0"));
  EXPECT_TRUE(filter.keeps("", "1/01"));
  EXPECT_FALSE(filter.keeps("", "11/0"));
  filter.whole_frame = true;
  EXPECT_TRUE(filter.keeps("", "1/0"));
  EXPECT_FALSE(filter.keeps("", "1/01"));
}

TEST(PhaseFilter, ExcludesFrameIds) {
  const PhaseFilter filter = {.frame = *Pattern::compile("1/"),
                              .frame_exclude = *Pattern::compile("1/2")};
  EXPECT_TRUE(filter.keeps("", "1/1"));
  EXPECT_FALSE(filter.keeps("", "1/2"));
}

}  // namespace
}  // namespace postflight
