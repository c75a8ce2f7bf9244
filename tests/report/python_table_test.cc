#include "report/python_table.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace postflight {
namespace {

using enum TableCell::Kind;

std::string table(const std::vector<std::string>& headers,
                  const std::vector<std::vector<TableCell>>& rows) {
  std::string text;
  {
    Output out([&](std::string_view piece) { text += piece; });
    write_python_table(
        headers, rows.size(),
        [&](std::size_t row, std::size_t column) { return rows[row][column]; },
        out);
  }
  return text;
}

// As Python's tabulate prints them.
TEST(PythonTable, PutsNumbersToTheRight) {
  EXPECT_EQ(table({"id", "desc", "size"},
                  {{{"7", kNumber}, {"default_pg"}, {"4", kNumber}},
                   {{"123456", kNumber}, {"x"}, {"", kNone}}}),
            "    id  desc          size\n"
            "------  ----------  ------\n"
            "     7  default_pg       4\n"
            "123456  x\n");
}

TEST(PythonTable, TakesOneTextForAColumnOfTexts) {
  EXPECT_EQ(table({"a"}, {{{"1", kNumber}}, {{"one"}}}), "a\n---\n1\none\n");
}

TEST(PythonTable, HasHeadersWithoutRows) {
  EXPECT_EQ(table({"id", "desc"}, {}), "id    desc\n----  ------\n");
}

TEST(PythonTable, CountsCharactersNotBytes) {
  EXPECT_EQ(table({"a", "b"}, {{{"ääää"}, {"x"}}, {{"y"}, {"z"}}}),
            "a     b\n----  ---\nääää  x\ny     z\n");
}

}  // namespace
}  // namespace postflight
