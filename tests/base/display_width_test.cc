#include "base/display_width.h"

#include "base/arbitrary_text.h"
#include "base/escape.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("plain text"), 10U);
  EXPECT_EQ(display_width("größe"), 5U);
  EXPECT_EQ(display_width("e\xcc\x81"), 1U);
  EXPECT_EQ(display_width("漢字"), 4U);
  EXPECT_EQ(display_width("ｶﾀｶﾅ"), 4U);
  EXPECT_EQ(display_width("カタカナ"), 8U);
  EXPECT_EQ(display_width("한국"), 4U);
  EXPECT_EQ(display_width("😀"), 2U);
  EXPECT_EQ(display_width("…"), 1U);
}

TEST(CutToWidth, LeavesWhatFits) {
  EXPECT_EQ(cut_to_width("12345", 5), "12345");
  EXPECT_EQ(cut_to_width("漢字", 4), "漢字");
  EXPECT_EQ(cut_to_width("", 0), "");
}

TEST(CutToWidth, MarksWhatItCutsOff) {
  EXPECT_EQ(cut_to_width("123456", 5), "1234…");
  EXPECT_EQ(cut_to_width("123456", 5, "..."), "12...");
  EXPECT_EQ(cut_to_width("123456", 1), "…");
  EXPECT_EQ(cut_to_width("123456", 2, "..."), "..");
  EXPECT_EQ(cut_to_width("123456", 0), "");
}

TEST(CutToWidth, CutsNoWideCharacterInHalf) {
  EXPECT_EQ(cut_to_width("漢字漢", 5), "漢字…");
  EXPECT_EQ(cut_to_width("漢字漢", 4), "漢…");
}

TEST(CutToWidth, KeepsAccentsWithTheirLetters) {
  EXPECT_EQ(cut_to_width("e\xcc\x81"
                         "abc",
                         2),
            "e\xcc\x81…");
}

RC_GTEST_PROP(CutToWidth, NeverExceedsTheWidth, ()) {
  const std::string text = *rc::gen::oneOf(
      arbitrary_text(), rc::gen::map(arbitrary_text(), [](std::string raw) {
        return escape_for_terminal(raw);
      }));
  const auto width = *rc::gen::inRange<std::size_t>(0, 100);
  const std::string cut = cut_to_width(text, width);
  RC_ASSERT(display_width(cut) <= width);
  RC_ASSERT((cut == text) == (display_width(text) <= width));
}

}  // namespace
}  // namespace postflight
