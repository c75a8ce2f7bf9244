#include "cli/arguments/help_text.h"

#include "cli/arguments/common_options.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(ExamplesText, PutsWhatExamplesDoBesideThem) {
  EXPECT_EQ(examples_text({{"do x", "one"}, {"do --all", "all"}}),
            "  do x      one\n"
            "  do --all  all\n");
}

TEST(ExamplesText, PutsWhatALongExampleDoesBelowIt) {
  const std::string line(70, 'x');
  EXPECT_EQ(
      examples_text(
          {{"do this", "the short"}, {line, "the long"}, {"do", "shorter"}}),
      "  do this  the short\n"
      "  " +
          line +
          "\n"
          "           the long\n"
          "  do       shorter\n");
}

TEST(ExamplesText, FillsTheLastColumn) {
  // 2 + 67 + 2 + 9 are 80 columns.
  const std::string fits(67, 'x');
  EXPECT_EQ(examples_text({{fits, "nine char"}}),
            "  " + fits + "  nine char\n");
  const std::string wide(68, 'x');
  EXPECT_EQ(examples_text({{wide, "nine char"}}),
            "  " + wide + "\n      nine char\n");
}

TEST(HelpText, ShowsAllThatIsDeclared) {
  bool all = false;
  std::vector<std::string> files;
  std::string wide;
  Command command = {
      .name = "sum",
      .sentence =
          "Adds it.\nThis line is longer than the eighty columns that there "
          "are for it, so it goes on below.",
      .examples = {{"postflight sum a", "one"}},
      .declare = [&](CommandArguments& arguments) -> CommandRun {
        arguments.positional("FILE", files, "What to add").required();
        arguments.flag("-a,--all", all, "All of it");
        arguments.option("--a-long-option", wide, "VALUE", "Beside nothing");
        return [](Session&) { return Exit{}; };
      },
      .commands = {{.name = "up",
                    .sentence = "Rounds up.\nMore.",
                    .examples = {},
                    .declare = {}}},
      .path = "sum"};
  CommonOptions common;
  declare_parameters(command, common, [](CommandArguments&) {});
  EXPECT_EQ(help_text(command),
            "Adds it.\n"
            "This line is longer than the eighty columns that there are for "
            "it, so it goes on\n"
            "below.\n"
            "\n"
            "Examples:\n"
            "  postflight sum a  one\n"
            "\n"
            "Usage: postflight sum [OPTIONS] FILE... [SUBCOMMAND]\n"
            "\n"
            "Positionals:\n"
            "  FILE                  What to add\n"
            "\n"
            "Options:\n"
            "  -h,--help             Show this help\n"
            "  -a,--all              All of it\n"
            "  --a-long-option VALUE Beside nothing\n"
            "\n"
            "Subcommands:\n"
            "  up        Rounds up.\n"
            "\n");
}

}  // namespace
}  // namespace postflight
