#include "doctor/settings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// "warning unknown_variable TORCH_X"
std::vector<std::string> found(const JobEnvironment& environment) {
  std::vector<std::string> lines;
  for (const Finding& finding : check_settings(environment).findings)
    if (finding.severity != Severity::kNote)
      lines.push_back(fmt::format("{} {} {}", severity_name(finding.severity),
                                  finding.kind, finding.where));
  return lines;
}

JobEnvironment good() {
  return {{"TORCH_FR_BUFFER_SIZE", "2000"}};
}

JobEnvironment with(const std::string& name, const std::string& value) {
  JobEnvironment environment = good();
  environment[name] = value;
  return environment;
}

TEST(Settings, AreFineAsRecommended) {
  EXPECT_THAT(found(good()), IsEmpty());
  EXPECT_THAT(found(with("TORCH_NCCL_HIGH_PRIORITY", "1")), IsEmpty());
  EXPECT_THAT(found(with("PATH", "/bin")), IsEmpty());
}

TEST(Settings, HaveToSizeTheRing) {
  EXPECT_THAT(found({}),
              ElementsAre("warning missing_variable TORCH_FR_BUFFER_SIZE"));
  EXPECT_THAT(found({{"TORCH_NCCL_TRACE_BUFFER_SIZE", "0"}}),
              ElementsAre("error recorder_off TORCH_NCCL_TRACE_BUFFER_SIZE"));
  EXPECT_THAT(found({{"TORCH_FR_BUFFER_SIZE", "2097152"}}),
              ElementsAre("warning absurd_value TORCH_FR_BUFFER_SIZE"));
  EXPECT_THAT(found({{"TORCH_FR_BUFFER_SIZE", "16"}}),
              ElementsAre("warning absurd_value TORCH_FR_BUFFER_SIZE"));
  EXPECT_THAT(found({{"TORCH_FR_BUFFER_SIZE", "2k"}}),
              ElementsAre("error invalid_value TORCH_FR_BUFFER_SIZE"));
}

TEST(Settings, SuggestTheNameThatWasMeant) {
  const CheckedSettings checked =
      check_settings(with("TORCH_NCCL_DUMP_ON_TIMOUT", "1"));
  EXPECT_EQ(checked.findings.front().message,
            "TORCH_NCCL_DUMP_ON_TIMOUT is unknown, and torch ignores it; did "
            "you mean TORCH_NCCL_DUMP_ON_TIMEOUT?");
  EXPECT_EQ(checked.findings.front().severity, Severity::kWarning);
  // A name that is like no other may be one of a later torch.
  EXPECT_THAT(found(with("TORCH_NCCL_SOMETHING_ELSE", "1")), IsEmpty());
}

TEST(Settings, KnowOldNames) {
  const CheckedSettings checked =
      check_settings({{"TORCH_NCCL_TRACE_BUFFER_SIZE", "3000"}});
  EXPECT_EQ(checked.find("TORCH_FR_BUFFER_SIZE").value, "3000");
  EXPECT_EQ(checked.find("TORCH_FR_BUFFER_SIZE").set_as,
            "TORCH_NCCL_TRACE_BUFFER_SIZE");
  EXPECT_THAT(found({{"TORCH_NCCL_TRACE_BUFFER_SIZE", "3000"},
                     {"TORCH_FR_BUFFER_SIZE", "2000"}}),
              ElementsAre("warning contradicting_variables "
                          "TORCH_NCCL_TRACE_BUFFER_SIZE"));
}

TEST(Settings, FindThoseThatMakeOthersUseless) {
  EXPECT_THAT(found(with("TORCH_FR_DUMP_ON_TIMEOUT", "0")),
              ElementsAre("error dump_off TORCH_FR_DUMP_ON_TIMEOUT"));
  EXPECT_THAT(
      found(with("TORCH_NCCL_ENABLE_MONITORING", "false")),
      ElementsAre("error useless_together TORCH_NCCL_ENABLE_MONITORING"));
  EXPECT_THAT(
      found(with("TORCH_INCLUDE_STACK_TRACE", "0")),
      ElementsAre("warning useless_together TORCH_INCLUDE_STACK_TRACE"));
  EXPECT_THAT(
      found(with("TORCH_INCLUDE_ONLY_ACTIVE", "1")),
      ElementsAre("warning useless_together TORCH_INCLUDE_ONLY_ACTIVE"));
  EXPECT_THAT(
      found(with("NCCL_ASYNC_ERROR_HANDLING", "1")),
      ElementsAre("warning useless_together TORCH_NCCL_ASYNC_ERROR_HANDLING"));
  EXPECT_THAT(found(with("TORCH_FR_DUMP_TEMP_FILE", "/tmp/job1")),
              ElementsAre("warning absurd_value TORCH_FR_DUMP_TEMP_FILE"));
  EXPECT_THAT(found(with("TORCH_FR_DUMP_TEMP_FILE", "dumps/rank_")),
              ElementsAre("warning absurd_value TORCH_FR_DUMP_TEMP_FILE"));
  EXPECT_THAT(found(with("TORCH_FR_DUMP_TEMP_FILE", "~/rank_")),
              ElementsAre("error absurd_value TORCH_FR_DUMP_TEMP_FILE"));
  EXPECT_THAT(found(with("TORCH_FR_DUMP_TEMP_FILE", "$DUMPS/rank_")),
              IsEmpty());
}

TEST(Settings, AreReadFromProcesses) {
  EXPECT_THAT(environment_of_process(std::string_view("A=1\0B=x=y\0", 10)),
              UnorderedElementsAre(Pair("A", "1"), Pair("B", "x=y")));
}

TEST(Settings, TellWhichVersionsReadANewName) {
  const auto notes = [](const JobEnvironment& environment) {
    std::vector<std::string> kinds;
    for (const Finding& finding : check_settings(environment).findings)
      kinds.push_back(finding.kind);
    return kinds;
  };
  EXPECT_THAT(notes(with("TORCH_FR_DUMP_ON_TIMEOUT", "1")),
              Contains("new_variable"));
  JobEnvironment both = with("TORCH_FR_DUMP_ON_TIMEOUT", "1");
  both["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "1";
  EXPECT_THAT(notes(both), Not(Contains("new_variable")));
  EXPECT_THAT(found(with("TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC", "100")),
              ElementsAre("warning useless_together "
                          "TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC"));
  EXPECT_THAT(found({{"TORCH_HCCL_TRACE_BUFFER_SIZE", "2000"}}), IsEmpty());
}

TEST(Settings, SayWhereDumpsGo) {
  const auto prefix = [](const JobEnvironment& environment) {
    return dump_prefix(check_settings(environment), environment);
  };
  EXPECT_EQ(prefix({{"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/d/rank_"}}),
            "/d/rank_");
  EXPECT_EQ(prefix({{"HOME", "/home/u"}}),
            "/home/u/.cache/torch/comm_lib_trace_rank_");
  EXPECT_EQ(prefix({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/c"}}),
            "/c/torch/comm_lib_trace_rank_");
  EXPECT_EQ(prefix({{"TORCH_FR_DUMP_TEMP_FILE", "$X/rank_"}}), std::nullopt);
  EXPECT_EQ(prefix({}), std::nullopt);
}

}  // namespace
}  // namespace postflight
