#include "cli/arguments/fr_trace_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;

// With some options that torchfrtrace has, and some that it does not have.
Command fr_trace() {
  Command command;
  for (const char* const name :
       {"--help", "--selected-ranks", "--just_print_entries", "--stdout",
        "--exit-code", "--json"})
    command.parameters.push_back({.names = {name}});
  return command;
}

std::vector<std::string> spelt(std::vector<std::string> arguments) {
  EXPECT_TRUE(spell_out_fr_trace_options(fr_trace(), arguments));
  return arguments;
}

TEST(FrTraceArguments, SpellsOutAbbreviations) {
  EXPECT_THAT(spelt({"fr-trace", "--sel", "0", "--mis=3", "--just"}),
              ElementsAre("fr-trace", "--selected-ranks", "0",
                          "--mismatch_cap=3", "--just_print_entries"));
}

TEST(FrTraceArguments, PrefersTheOptionsOfTorchfrtrace) {
  EXPECT_THAT(spelt({"--s", "--st", "--e", "--j"}),
              ElementsAre("--selected-ranks", "--stdout", "--exit-code",
                          "--just_print_entries"));
}

TEST(FrTraceArguments, LeavesOtherWordsAlone) {
  EXPECT_THAT(spelt({"--json", "--nothing", "-p", "--", "--sel"}),
              ElementsAre("--json", "--nothing", "-p", "--", "--sel"));
}

TEST(FrTraceArguments, RefusesAmbiguousOnes) {
  std::vector<std::string> arguments = {"--p"};
  const Result<> result = spell_out_fr_trace_options(fr_trace(), arguments);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(),
            "ambiguous option: --p could match --pg-filters, --prefix, "
            "--print_stack_trace");
}

TEST(FrTraceArguments, KnowTheNameOfTheProgram) {
  char name[] = "/opt/bin/torchfrtrace";
  char folder[] = "dumps";
  char* words[] = {name, folder, nullptr};
  EXPECT_THAT(arguments_with_command(2, words),
              ElementsAre("fr-trace", "dumps"));
  char other[] = "postflight";
  words[0] = other;
  EXPECT_THAT(arguments_with_command(2, words), ElementsAre("dumps"));
}

}  // namespace
}  // namespace postflight
