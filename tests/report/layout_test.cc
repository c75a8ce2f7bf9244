#include "report/layout.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace postflight {
namespace {

// Lays out nested brackets: "[1 2 [3 4]]" with one-word items.
std::string laid_out(std::string_view source, const LayoutOptions& options) {
  std::string text;
  {
    Output out([&text](std::string_view piece) { text += piece; });
    Layout layout(options, out);
    int depth = 0;
    for (std::size_t i = 0; i < source.size(); ++i) {
      const char c = source[i];
      if (c == ' ')
        continue;
      if (depth > 0 && c != ']')
        layout.item();
      if (c == '[') {
        layout.open("[");
        ++depth;
      } else if (c == ']') {
        layout.close("]");
        --depth;
      } else {
        const std::size_t end =
            std::min(source.find_first_of(" []", i), source.size());
        layout.text(source.substr(i, end - i));
        i = end - 1;
      }
    }
    layout.finish();
  }
  return text;
}

TEST(Layout, KeepsWhatFitsOnOneLine) {
  EXPECT_EQ(laid_out("[1 2 [3 4] []]", {.width = 20}), "[1, 2, [3, 4], []]\n");
}

TEST(Layout, BreaksTheOutermostGroupFirst) {
  EXPECT_EQ(laid_out("[1 2 [3 4] []]", {.width = 12}),
            "[\n  1,\n  2,\n  [3, 4],\n  []\n]\n");
}

TEST(Layout, LeavesRoomForTheCommaBehindAGroup) {
  EXPECT_EQ(laid_out("[[abc def] x]", {.width = 12}),
            "[\n  [\n    abc,\n    def\n  ],\n  x\n]\n");
  EXPECT_EQ(laid_out("[[abc def] x]", {.width = 13}),
            "[\n  [abc, def],\n  x\n]\n");
}

TEST(Layout, IndentsByTheMarginAndNoDeeperThanTold) {
  EXPECT_EQ(
      laid_out("[[[aaaaaaaaaa]]]", {.width = 8, .margin = 1, .max_indent = 2}),
      " [\n   [\n   [\n   aaaaaaaaaa\n   ]\n   ]\n ]\n");
}

TEST(Layout, HoldsNoMoreThanALineWhileGroupsStayOpen) {
  std::string deep(100'000, '[');
  deep += std::string(100'000, ']');
  const std::string text = laid_out(deep, {.width = 80, .max_indent = 4});
  EXPECT_EQ(std::count(text.begin(), text.end(), '['), 100'000);
  EXPECT_EQ(std::count(text.begin(), text.end(), ']'), 100'000);
}

}  // namespace
}  // namespace postflight
