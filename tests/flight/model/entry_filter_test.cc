#include "flight/model/entry_filter.h"

#include <string>

#include <gtest/gtest.h>

#include "flight/job_maker.h"

namespace postflight {
namespace {

// The places of the entries that are taken, of a job of one rank.
std::string taken(const EntryFilterOptions& options) {
  const Job job =
      JobMaker()
          .group("0", {0})
          .group("tp_0", {0})
          .rank(0, {{1},
                    {2, "nccl:broadcast", State::kStarted},
                    {1, "gloo:all_reduce", State::kScheduled, 4, 0, 1},
                    {7, "nccl:send 0->1", State::kScheduled, 4, 1, 1}})
          .job();
  const EntryFilter filter(job, options);
  std::string text;
  for (std::size_t i = 0; i < job.ranks[0].entries.size(); ++i)
    if (filter.takes(job.ranks[0].entries[i]))
      text += std::to_string(i);
  return text;
}

TEST(EntryFilter, TakesAllByDefault) {
  EXPECT_EQ(taken({}), "0123");
}

TEST(EntryFilter, GroupsGoByNameOrDescription) {
  EXPECT_EQ(taken({.groups = {"tp_*"}}), "23");
  EXPECT_EQ(taken({.groups = {"0_description", "nothing"}}), "01");
}

TEST(EntryFilter, OperationsGoWithBackendOrWithout) {
  EXPECT_EQ(taken({.operations = {"all_reduce"}}), "02");
  EXPECT_EQ(taken({.operations = {"gloo:*", "send"}}), "23");
}

TEST(EntryFilter, StatesAndSequences) {
  EXPECT_EQ(taken({.states = {State::kScheduled, State::kStarted}}), "123");
  EXPECT_EQ(taken({.sequences = *NumberSelection::parse("2-7")}), "13");
  EXPECT_EQ(taken({.sequences = *NumberSelection::parse("1"),
                   .states = {State::kScheduled}}),
            "2");
}

}  // namespace
}  // namespace postflight
