#include "profile/log/summary.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(ProfileSummary, CountsRecursionOnceAndFindsTheHottestLine) {
  ProfileBuilder builder;
  const auto frame = [&builder](std::string_view name, std::uint32_t line) {
    return builder.frame(
        {FrameKind::kPython, builder.text(name), builder.text("a.py"), line});
  };
  const std::uint32_t outer = builder.stack(0, frame("f", 1));
  const std::uint32_t middle = builder.stack(outer, frame("f", 2));
  const std::uint32_t cold = builder.stack(middle, frame("g", 7));
  const std::uint32_t hot = builder.stack(middle, frame("g", 8));
  const std::uint32_t phase = builder.phase({0, builder.text("p"), 0});
  builder.thread({.rank = 0});
  builder.thread({.rank = 1});
  builder.profile().samples = {
      {.weight_ns = 10, .thread = 0, .stack = cold},
      {.weight_ns = 30, .thread = 1, .stack = hot, .phase = phase},
      {.weight_ns = 5,
       .thread = 1,
       .stack = outer,
       .flags = {.waiting = true}}};

  const ProfileSummary summary = summarise(builder.profile());
  EXPECT_EQ(summary.spent, (Spent{45, 3, 0, 5}));
  EXPECT_EQ(summary.waiting, (Spent{5, 1, 0, 5}));
  ASSERT_EQ(summary.functions.size(), 2U);
  const FunctionTime& g = summary.functions[0];
  EXPECT_EQ(builder.profile().texts[g.name], "g");
  EXPECT_EQ(g.line, 8U);
  EXPECT_EQ(g.self, (Spent{40, 2}));
  EXPECT_EQ(g.total, (Spent{40, 2}));
  const FunctionTime& f = summary.functions[1];
  EXPECT_EQ(f.self, (Spent{5, 1, 0, 5}));
  EXPECT_EQ(f.total, (Spent{45, 3, 0, 5}));
  ASSERT_EQ(summary.phases.size(), 2U);
  EXPECT_EQ(summary.phases[0].phase, phase);
  EXPECT_EQ(summary.phases[0].spent, (Spent{30, 1}));
  ASSERT_EQ(summary.ranks.size(), 2U);
  EXPECT_EQ(summary.ranks[1].rank, 1);
  EXPECT_EQ(summary.ranks[1].spent, (Spent{35, 2, 0, 5}));
}

}  // namespace
}  // namespace postflight
