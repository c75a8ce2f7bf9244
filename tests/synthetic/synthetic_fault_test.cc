#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "synthetic/loaded_job.h"

namespace postflight::synthetic {
namespace {

// A few jobs with that fault.
std::vector<JobOptions> jobs_with(FaultKind fault) {
  std::vector<JobOptions> all;
  const Layout layouts[] = {
      {.tensor = 4, .pipeline = 2, .data = 4},
      {.tensor = 2, .pipeline = 4, .data = 4, .expert = 2},
      {.tensor = 1, .pipeline = 2, .data = 4, .context = 4},
      {.tensor = 1, .pipeline = 1, .data = 8},
  };
  std::uint64_t seed = 100;
  for (const Layout& layout : layouts)
    for (int i = 0; i < 6; ++i) {
      if (!can_happen(fault, layout, false))
        continue;
      JobOptions options{.layout = layout, .fault = fault, .seed = ++seed};
      options.schedule.steps = 4;
      options.schedule.batched = fault == FaultKind::kDeadlock || i % 2 == 0;
      options.schedule.sync_often = i % 3 == 0;
      options.timing = i % 2 == 1;
      all.push_back(options);
    }
  return all;
}

bool is_pending(const Record& record) {
  return record.completed == kNever && !record.unlaunched &&
         record.kind != RecordKind::kMember &&
         record.kind != RecordKind::kCoalescedMember;
}

class EveryFault : public testing::TestWithParam<FaultKind> {};

TEST_P(EveryFault, HangsTheJobUnlessItOnlySlowsIt) {
  using enum FaultKind;
  for (const JobOptions& options : jobs_with(GetParam())) {
    const SyntheticJob job = made_job(options);
    SCOPED_TRACE(job.truth_text());
    SCOPED_TRACE(options.seed);
    if (GetParam() == kHealthy || GetParam() == kStraggler) {
      EXPECT_FALSE(job.simulated().hung);
      continue;
    }
    EXPECT_TRUE(job.simulated().hung);
    const auto waits = [&](int rank) {
      return std::ranges::any_of(
          job.simulated().records[static_cast<std::size_t>(rank)], is_pending);
    };
    int waiting = 0;
    for (int rank = 0; rank < job.world(); ++rank)
      waiting += waits(rank) ? 1 : 0;
    EXPECT_GT(waiting, 0);
    if (GetParam() == kNeverJoined || GetParam() == kPipelineStall) {
      for (const int culprit : job.truth().culprits)
        EXPECT_FALSE(waits(culprit)) << "rank " << culprit;
    }
  }
}

TEST_P(EveryFault, HasATruthThatNamesRanksOfTheJob) {
  for (const JobOptions& options : jobs_with(GetParam())) {
    const SyntheticJob job = made_job(options);
    const Truth& truth = job.truth();
    EXPECT_TRUE(std::ranges::is_sorted(truth.culprits));
    for (const int culprit : truth.culprits)
      EXPECT_TRUE(culprit >= 0 && culprit < job.world());
    EXPECT_TRUE(truth.allows({truth.kind, truth.culprits}));
    EXPECT_FALSE(truth.allows({truth.kind, {job.world()}}));
  }
}

TEST_P(EveryFault, CanBeRead) {
  const LoadedJob loaded = load(jobs_with(GetParam())[0]);
  EXPECT_EQ(loaded.job.ranks.size() + loaded.made.truth().no_dump.size(),
            static_cast<std::size_t>(loaded.made.world()));
}

std::vector<FaultKind> all_faults() {
  std::vector<FaultKind> all;
  for (std::size_t i = 0; i < kFaultKinds; ++i)
    all.push_back(static_cast<FaultKind>(i));
  return all;
}

INSTANTIATE_TEST_SUITE_P(SyntheticFault, EveryFault,
                         testing::ValuesIn(all_faults()),
                         [](const auto& instance) {
                           return std::string(fault_name(instance.param));
                         });

TEST(SyntheticFault, LeavesTheCulpritBehindInItsGroup) {
  const LoadedJob loaded = load({.layout = {.data = 4},
                                 .fault = FaultKind::kNeverJoined,
                                 .culprit = 2,
                                 .seed = 12});
  std::vector<std::int64_t> newest;
  for (const RankDump& dump : loaded.job.ranks) {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < dump.entries.size(); ++i)
      most = std::max(most, dump.entries[i].operation_id);
    newest.push_back(most);
  }
  EXPECT_LT(newest[2], newest[0]);
  EXPECT_EQ(newest[0], newest[1]);
  EXPECT_EQ(newest[0], newest[3]);
}

TEST(SyntheticFault, ShowsAStalledDeviceByItsStartTimes) {
  // The seeds for which the device stops rather than fails.
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const LoadedJob loaded = load({.layout = {.data = 4},
                                   .timing = true,
                                   .fault = FaultKind::kDeviceStalled,
                                   .culprit = 1,
                                   .seed = seed});
    const auto oldest_pending = [&](int rank) {
      const Entries& entries = loaded.job.find({rank})->entries;
      for (std::size_t i = 0; i < entries.size(); ++i)
        if (entries[i].state != State::kCompleted)
          return entries[i];
      return Entry();
    };
    const Entry culprit = oldest_pending(1);
    if (oldest_pending(0).sequence != culprit.sequence)
      continue;
    ++seen;
    EXPECT_EQ(culprit.state, State::kScheduled);
    EXPECT_EQ(oldest_pending(0).state, State::kStarted);
    EXPECT_EQ(oldest_pending(3).state, State::kStarted);
  }
  EXPECT_GT(seen, 2);
}

TEST(SyntheticFault, StopsAWholeNode) {
  const SyntheticJob job = made_job({.layout = {.tensor = 2, .data = 8},
                                     .ranks_per_node = 4,
                                     .fault = FaultKind::kNoDump,
                                     .culprit = 6,
                                     .whole_node = true});
  EXPECT_THAT(job.truth().culprits, testing::ElementsAre(4, 5, 6, 7));
  EXPECT_FALSE(job.has_dump(5));
  EXPECT_TRUE(job.has_dump(8));
}

}  // namespace
}  // namespace postflight::synthetic
