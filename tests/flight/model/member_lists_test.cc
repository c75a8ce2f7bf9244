#include "flight/model/member_lists.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MemberLists, ParsesEachListOnce) {
  MemberLists lists;
  const MemberList& first = lists.find("[3, 1]");
  EXPECT_THAT(first.ranks, ElementsAre(Rank{1}, Rank{3}));
  EXPECT_EQ(&lists.find(std::string("[3, 1]")), &first);
  EXPECT_NE(&lists.find("[1, 3]"), &first);
  EXPECT_THAT(lists.find("everybody").ranks, IsEmpty());
  EXPECT_THAT(lists.find("").ranks, IsEmpty());
}

// Lists of one length that end alike share a place among the recent ones.
TEST(MemberLists, TellsListsThatEndAlikeApart) {
  MemberLists lists;
  const std::string rest = ", 1000, 1001, 1002, 1003]";
  const MemberList* const first = &lists.find("[1" + rest);
  const MemberList* const second = &lists.find("[2" + rest);
  EXPECT_NE(first, second);
  EXPECT_EQ(&lists.find("[1" + rest), first);
  EXPECT_EQ(&lists.find("[2" + rest), second);
  EXPECT_EQ(second->ranks[0], Rank{2});
}

TEST(MemberLists, ServesSeveralThreads) {
  MemberLists lists;
  std::vector<std::vector<const MemberList*>> found(4);
  {
    std::vector<std::jthread> threads;
    for (std::vector<const MemberList*>& own : found)
      threads.emplace_back([&lists, &own] {
        for (int i = 0; i < 1000; ++i)
          own.push_back(&lists.find("[" + std::to_string(i % 100) + "]"));
      });
  }
  for (const std::vector<const MemberList*>& own : found)
    EXPECT_EQ(own, found[0]);
}

}  // namespace
}  // namespace postflight
