#include "profile/log/lines.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(LinesOf, DividesTheTimeOfALineByWhereItWasSpent) {
  ProfileBuilder builder;
  const std::uint32_t thread = builder.thread({.pid = 1, .tid = 1});
  const std::uint32_t file = builder.text("a.py");
  const std::uint32_t f = builder.stack(
      0, builder.frame({FrameKind::kPython, builder.text("f"), file, 3}));
  const std::uint32_t native = builder.stack(
      f, builder.frame({FrameKind::kNative, builder.text("memcpy"), 0, 0}));
  const std::uint32_t g = builder.stack(
      f, builder.frame({FrameKind::kPython, builder.text("g"), file, 7}));
  const std::uint32_t alone = builder.stack(
      0, builder.frame({FrameKind::kMarker, builder.text("[gcc]"), 0, 0}));
  builder.profile().samples = {
      {.weight_ns = 10,
       .system_ns = 4,
       .thread = thread,
       .stack = f,
       .flags = {.gil = true, .interpreter = true}},
      {.weight_ns = 20,
       .thread = thread,
       .stack = native,
       .flags = {.no_gil = true, .library = true}},
      {.weight_ns = 5,
       .thread = thread,
       .stack = g,
       .flags = {.waiting = true}},
      {.weight_ns = 99, .thread = thread, .stack = alone}};
  const std::vector<LineTime> lines = lines_of(builder.profile());
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].line, 3U);
  EXPECT_EQ(lines[0].samples, 2U);
  EXPECT_EQ(lines[0].ns, 30U);
  EXPECT_EQ(lines[0].system_ns, 4U);
  EXPECT_EQ(lines[0].interpreter_ns, 6U);
  EXPECT_EQ(lines[0].library_ns, 20U);
  EXPECT_EQ(lines[0].gil_ns, 10U);
  EXPECT_EQ(lines[1].line, 7U);
  EXPECT_EQ(lines[1].waiting_ns, 5U);
}

}  // namespace
}  // namespace postflight
