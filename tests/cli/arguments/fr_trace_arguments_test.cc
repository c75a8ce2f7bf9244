#include "cli/arguments/fr_trace_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;

std::vector<std::string> spelt(std::vector<std::string> arguments) {
  EXPECT_TRUE(spell_out_fr_trace_options(arguments));
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

TEST(FrTraceArguments, TakesAnEqualsSignBehindALetter) {
  EXPECT_THAT(spelt({"-p=trace_", "-o=a=b"}), ElementsAre("-ptrace_", "-oa=b"));
}

TEST(FrTraceArguments, LeavesOtherWordsAlone) {
  EXPECT_THAT(spelt({"--json", "--nothing", "-p", "--", "--sel"}),
              ElementsAre("--json", "--nothing", "-p", "--", "--sel"));
}

TEST(FrTraceArguments, RefusesAmbiguousOnes) {
  std::vector<std::string> arguments = {"--p"};
  const Result<> result = spell_out_fr_trace_options(arguments);
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
