#include "cli/arguments/help_text.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(HelpText, PutsWhatExamplesDoBesideThem) {
  EXPECT_EQ(help_text("Does it.", {{"do x", "one"}, {"do --all", "all"}}),
            "Does it.\n"
            "\n"
            "Examples:\n"
            "  do x      one\n"
            "  do --all  all\n");
}

TEST(HelpText, WrapsEachLineOfTheSentence) {
  EXPECT_EQ(
      help_text("Does it.\nThis line is longer than the eighty columns that "
                "there are for it, so it goes on below.",
                {{"do", "it"}}),
      "Does it.\n"
      "This line is longer than the eighty columns that there are for it, so "
      "it goes on\n"
      "below.\n"
      "\n"
      "Examples:\n"
      "  do  it\n");
}

TEST(HelpText, PutsWhatALongExampleDoesBelowIt) {
  const std::string line(70, 'x');
  EXPECT_EQ(help_text("Does it.", {{"do this", "the short"},
                                   {line, "the long"},
                                   {"do", "shorter"}}),
            "Does it.\n"
            "\n"
            "Examples:\n"
            "  do this  the short\n"
            "  " +
                line +
                "\n"
                "           the long\n"
                "  do       shorter\n");
}

TEST(HelpText, FillsTheLastColumn) {
  // 2 + 67 + 2 + 9 are 80 columns.
  const std::string fits(67, 'x');
  EXPECT_EQ(help_text("Does it.", {{fits, "nine char"}}),
            "Does it.\n\nExamples:\n  " + fits + "  nine char\n");
  const std::string wide(68, 'x');
  EXPECT_EQ(help_text("Does it.", {{wide, "nine char"}}),
            "Does it.\n\nExamples:\n  " + wide + "\n      nine char\n");
}

}  // namespace
}  // namespace postflight
