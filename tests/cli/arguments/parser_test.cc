#include "cli/arguments/parser.h"

#include "cli/arguments/common_options.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::Optional;

// A program with a command of each kind.
class ParserTest : public testing::Test {
 protected:
  ParserTest() {
    const auto run = [](Session&) { return Exit{}; };
    Command copy = {
        .name = "copy",
        .sentence = "Copies.",
        .examples = {},
        .declare = [this, run](CommandArguments& arguments) {
          arguments.positional("FROM", from, "").required();
          arguments.positional("TO", to, "");
          arguments.flag("-q,--quiet", quiet, "");
          arguments.flag("-f", force, "");
          arguments.option("-n,--number", number, "N", "");
          arguments.option("--size", size, "BYTES", "").between(1, 100);
          arguments.option("-k,--key", keys, "KEY", "");
          arguments.option("--of", parts, "A,B", "")
              .separated_by(',')
              .one_of({"a", "b", "c"});
          arguments.option("--ranks", ranks, "N...", "").several();
          return run;
        }};
    Command start = {
        .name = "start",
        .sentence = "Starts.",
        .examples = {},
        .declare =
            [this, run](CommandArguments& arguments) {
              arguments.positional("WORD", words, "");
              return run;
            },
        .commands = {{.name = "later",
                      .sentence = "Starts later.",
                      .examples = {},
                      .declare = [run](CommandArguments&) { return run; }}}};
    program = {.name = "postflight",
               .sentence = "Does.",
               .examples = {},
               .declare = {},
               .commands = {std::move(copy), std::move(start)}};
    declare_parameters(program, common, [](CommandArguments&) {});
  }

  std::string parsed(const std::vector<std::string>& line) {
    const Result<Parsed> result = parse(program, line);
    if (!result)
      return std::string(result.error().message());
    return result->command->called() +
           (result->answer == nullptr ? "" : " " + result->answer->name());
  }

  Command program;
  CommonOptions common;
  std::string from;
  std::string to;
  bool quiet = false;
  bool force = false;
  std::optional<std::int32_t> number;
  std::uint64_t size = 7;
  std::vector<std::string> keys;
  std::vector<std::string> parts;
  std::optional<std::vector<std::int64_t>> ranks;
  std::vector<std::string> words;
};

TEST_F(ParserTest, KeepsDefaults) {
  EXPECT_EQ(parsed({"copy", "a"}), "postflight copy");
  EXPECT_EQ(from, "a");
  EXPECT_EQ(to, "");
  EXPECT_EQ(number, std::nullopt);
  EXPECT_EQ(size, 7);
  EXPECT_EQ(ranks, std::nullopt);
}

TEST_F(ParserTest, TakesOptionsBetweenPositionals) {
  EXPECT_EQ(parsed({"copy", "a", "--number", "3", "b", "-q"}),
            "postflight copy");
  EXPECT_EQ(from, "a");
  EXPECT_EQ(to, "b");
  EXPECT_THAT(number, Optional(3));
  EXPECT_TRUE(quiet);
}

TEST_F(ParserTest, TakesValuesInEveryForm) {
  EXPECT_EQ(parsed({"copy", "a", "-kx", "-k=y", "-k", "z", "--key=[p,q]",
                    "--key", "-", "--key="}),
            "postflight copy");
  EXPECT_THAT(keys, ElementsAre("x", "y", "z", "[p,q]", "-", ""));
}

TEST_F(ParserTest, TakesJoinedFlags) {
  EXPECT_EQ(parsed({"copy", "a", "-qfn5"}), "postflight copy");
  EXPECT_TRUE(quiet && force);
  EXPECT_THAT(number, Optional(5));
}

TEST_F(ParserTest, TakesNegativeAndPaddedNumbers) {
  EXPECT_EQ(parsed({"copy", "a", "--number", "-010"}), "postflight copy");
  EXPECT_THAT(number, Optional(-10));
}

TEST_F(ParserTest, SplitsAtTheSeparator) {
  EXPECT_EQ(parsed({"copy", "--of", "a,b", "--of", "c", "x"}),
            "postflight copy");
  EXPECT_THAT(parts, ElementsAre("a", "b", "c"));
  EXPECT_EQ(from, "x");
}

TEST_F(ParserTest, TakesSeveralWordsOnlyWhereDeclared) {
  EXPECT_EQ(parsed({"copy", "--key", "k", "x", "--ranks", "0", "-1", "-q"}),
            "postflight copy");
  EXPECT_THAT(keys, ElementsAre("k"));
  EXPECT_THAT(ranks, Optional(ElementsAre(0, -1)));
  EXPECT_TRUE(quiet);
}

TEST_F(ParserTest, TakesEverythingBehindTwoDashes) {
  EXPECT_EQ(parsed({"start", "--", "later", "--help", "-x"}),
            "postflight start");
  EXPECT_THAT(words, ElementsAre("later", "--help", "-x"));
}

TEST_F(ParserTest, FindsACommandBelowACommand) {
  EXPECT_EQ(parsed({"start", "later"}), "postflight start later");
  EXPECT_EQ(parsed({"start", "now", "later"}), "postflight start");
  EXPECT_THAT(words, ElementsAre("now", "later"));
}

TEST_F(ParserTest, AnswersHelpWhateverIsMissing) {
  EXPECT_EQ(parsed({"--help"}), "postflight --help");
  EXPECT_EQ(parsed({"copy", "-h"}), "postflight copy --help");
  EXPECT_EQ(parsed({"start", "later", "--help", "--what"}),
            "postflight start later --help");
}

TEST_F(ParserTest, AnswersHelpWhereACommandIsMissing) {
  EXPECT_EQ(parsed({}), "postflight --help");
}

TEST_F(ParserTest, ExplainsMisuse) {
  EXPECT_EQ(parsed({"coppy"}),
            "'coppy' is not a command of postflight; did you mean copy? "
            "(postflight --help)");
  EXPECT_EQ(parsed({"copy"}), "FROM is required (postflight copy --help)");
  EXPECT_EQ(parsed({"copy", "a", "b", "c"}),
            "'c' is not an argument of postflight copy (postflight copy "
            "--help)");
  EXPECT_EQ(parsed({"copy", "--nummer=3"}),
            "'--nummer' is not an option of postflight copy; did you mean "
            "--number? (postflight copy --help)");
  EXPECT_EQ(parsed({"copy", "-xq"}),
            "'-xq' is not an option of postflight copy; did you mean -q? "
            "(postflight copy --help)");
  EXPECT_EQ(parsed({"copy", "--number"}),
            "--number needs a value: --number N (postflight copy --help)");
  EXPECT_EQ(parsed({"copy", "--number", "--quiet"}),
            "--number needs a value: --number N (postflight copy --help)");
  EXPECT_EQ(parsed({"copy", "--number=1", "-n2"}),
            "--number is given twice (postflight copy --help)");
  EXPECT_EQ(parsed({"copy", "--quiet=1"}),
            "--quiet takes no value (postflight copy --help)");
}

TEST_F(ParserTest, ExplainsValuesThatAreNotValid) {
  EXPECT_EQ(parsed({"copy", "--number", "five"}),
            "--number: 'five' is not valid: give a whole number (postflight "
            "copy --help)");
  EXPECT_EQ(parsed({"copy", "--number", "3000000000"}),
            "--number: '3000000000' is out of range (postflight copy --help)");
  EXPECT_EQ(parsed({"copy", "--size", "-1"}),
            "--size: '-1' is not valid: give a whole number, 0 or more "
            "(postflight copy --help)");
  EXPECT_EQ(parsed({"copy", "--size", "101"}),
            "--size: '101' is not valid: give 1 to 100 (postflight copy "
            "--help)");
  EXPECT_EQ(parsed({"copy", "--of", "a,d"}),
            "--of: 'd' is not valid: give a, b or c (postflight copy --help)");
}

}  // namespace
}  // namespace postflight
