#include "flight/matching/collective_table.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flight/job_maker.h"
#include "flight/model/job_loader.h"

namespace postflight {
namespace {

using testing::ElementsAre;

std::string shown(const Job& job, const CollectiveTable& table,
                  const Collective& row) {
  std::string text = row.message
                         ? fmt::format("{}->{} {}:", row.source.value,
                                       row.destination.value, row.sequence)
                         : fmt::format("#{}:", row.sequence);
  for (std::uint64_t i = 0; i < row.match_count; ++i) {
    const Match& match = table.matches[row.first_match + i];
    text += fmt::format(" {}.{}{}", job.ranks[match.rank].rank.value,
                        match.entry, match.agrees ? "" : "!");
  }
  if (row.absent > 0)
    text += fmt::format(" absent {}", row.absent);
  if (row.without_dump > 0)
    text += fmt::format(" no dump {}", row.without_dump);
  if (row.unknown() > 0)
    text += fmt::format(" unknown {}", row.unknown());
  if (row.pending > 0)
    text += fmt::format(" pending {}", row.pending);
  if (row.difference != Difference::kNone)
    text += fmt::format(" differ in {}", difference_name(row.difference));
  if (!row.majority)
    text += " undecided";
  return text;
}

std::vector<std::string> table_of(const Job& job) {
  const CollectiveTable table = tabulate(Matching(job));
  std::vector<std::string> rows;
  for (const Collective& row : table.collectives)
    rows.push_back(shown(job, table, row));
  return rows;
}

TEST(CollectiveTable, MatchesByGroupAndNumber) {
  EXPECT_THAT(table_of(JobMaker()
                           .group("0", {0, 1})
                           .group("1", {0, 1})
                           .rank(0, {{1}, {1, "nccl:x", kDone, 4, 0, 1}, {2}})
                           .rank(1, {{1, "nccl:x", kDone, 4, 0, 1}, {1}, {2}})
                           .job()),
              ElementsAre("#1: 0.0 1.1", "#2: 0.2 1.2", "#1: 0.1 1.0"));
}

TEST(CollectiveTable, TellsWhoIsAbsentFromWhoIsUnknown) {
  const std::vector<MadeEntry> waits = {{1}, {2}, {3, "nccl:x", kWaiting}};
  EXPECT_THAT(table_of(JobMaker()
                           .group("0", {0, 1, 2, 3, 4})
                           .rank(0, waits)
                           .rank(1, {{1}, {2}})
                           .rank(2, {{2}}, 40)
                           .rank(3, {{1}})
                           .cut_off()
                           .job()),
              ElementsAre("#1: 0.0 1.0 3.0 no dump 1 unknown 1",
                          "#2: 0.1 1.1 2.0 no dump 1 unknown 1",
                          "#3: 0.2 absent 2 no dump 1 unknown 1 pending 1"));
}

TEST(CollectiveTable, ARankWithNothingLeftOfTheGroupSaysNothing) {
  EXPECT_THAT(table_of(JobMaker()
                           .group("0", {0, 1, 2})
                           .group("1", {1})
                           .rank(0, {{1}})
                           .rank(1, {{9, "nccl:x", kDone, 4, 0, 1}}, 40)
                           .rank(2, {})
                           .job()),
              ElementsAre("#1: 0.0 absent 1 unknown 1 pending 1", "#9: 1.0"));
}

TEST(CollectiveTable, TheMinorityDisagrees) {
  EXPECT_THAT(
      table_of(
          JobMaker()
              .group("0", {0, 1, 2})
              .rank(0, {{1, "nccl:broadcast"}, {2}, {3}})
              .rank(1, {{1}, {2, "nccl:all_reduce", kDone, 5}, {3}})
              .rank(2,
                    {{1}, {2}, {3, "nccl:all_reduce", kDone, 4, 0, 0, "Half"}})
              .job()),
      ElementsAre("#1: 0.0! 1.0 2.0 differ in operation",
                  "#2: 0.1 1.1! 2.1 differ in sizes",
                  "#3: 0.2 1.2 2.2! differ in dtypes"));
}

TEST(CollectiveTable, HalfIsNoMajority) {
  EXPECT_THAT(table_of(JobMaker()
                           .group("0", {0, 1})
                           .rank(0, {{1, "nccl:broadcast"}})
                           .rank(1, {{1}})
                           .job()),
              ElementsAre("#1: 0.0 1.0! differ in operation undecided"));
}

TEST(CollectiveTable, SizesOfAnAllToAllMayDiffer) {
  for (const std::string name : {"nccl:all_to_all"})
    EXPECT_THAT(table_of(JobMaker()
                             .group("0", {0, 1})
                             .rank(0, {{1, name, kDone, 4}})
                             .rank(1, {{1, name, kDone, 5}})
                             .job()),
                ElementsAre("#1: 0.0 1.0"))
        << name;
}

TEST(CollectiveTable, ABatchIsJudgedByItsEnd) {
  const std::string name = "nccl:allreduce_coalesced";
  EXPECT_THAT(
      table_of(
          JobMaker()
              .group("0", {0, 1})
              .rank(0, {{1, name}, {1, name}, {1, "nccl:coalesced", kWaiting}})
              .rank(1, {{1, name, kWaiting}, {1, "nccl:coalesced"}})
              .job()),
      ElementsAre("#1: 0.0 0.1 0.2 1.0! 1.1! pending 2 differ in batch "
                  "undecided"));
}

TEST(CollectiveTable, PairsMessagesByOrder) {
  EXPECT_THAT(table_of(JobMaker()
                           .group("0", {5, 7})
                           .rank(5, {{1, "nccl:send 0->1", kDone, 4, 1},
                                     {1, "nccl:recv 0<-1", kDone, 4, 2},
                                     {1, "nccl:send 0->1", kWaiting, 8, 3},
                                     {1, "nccl:send 0->1", kWaiting, 8, 4}})
                           .rank(7, {{1, "nccl:recv 1<-0", kDone, 4, 1},
                                     {1, "nccl:send 1->0", kDone, 4, 2},
                                     {1, "nccl:recv 1<-0", kWaiting, 9, 3}})
                           .job()),
              ElementsAre("5->7 1: 5.0 7.0",
                          "5->7 2: 5.2 7.2 pending 2 differ in sizes undecided",
                          "5->7 3: 5.3 absent 1 pending 1", "7->5 1: 7.1 5.1"));
}

TEST(CollectiveTable, AlignsMessagesOfWrappedRingsAtTheLastCompleted) {
  EXPECT_THAT(table_of(JobMaker()
                           .group("0", {0, 1})
                           .rank(0,
                                 {{1, "nccl:send 0->1", kDone, 4, 8},
                                  {1, "nccl:send 0->1", kDone, 4, 9},
                                  {1, "nccl:send 0->1", kWaiting, 4, 10}},
                                 7)
                           .rank(1,
                                 {{1, "nccl:recv 1<-0", kDone, 4, 9},
                                  {1, "nccl:recv 1<-0", kWaiting, 4, 10}},
                                 8)
                           .job()),
              ElementsAre("0->1 1: 0.0 unknown 1", "0->1 2: 0.1 1.0",
                          "0->1 3: 0.2 1.1 pending 2"));
}

TEST(CollectiveTable, PeersOutsideTheGroupAreNotTold) {
  EXPECT_THAT(table_of(JobMaker()
                           .group("0", {0, 1})
                           .rank(0, {{1, "nccl:send 0->77", kDone, 4, 1}})
                           .rank(1, {{1, "nccl:recv", kDone, 4, 1}})
                           .job()),
              ElementsAre("-1->1 1: 1.0 unknown 1", "0->-1 1: 0.0 unknown 1"));
}

TEST(CollectiveTable, TakesAnyNumbers) {
  constexpr std::int64_t kFar = 9'000'000'000'000'000'000;
  EXPECT_THAT(table_of(JobMaker()
                           .group("0", {0, 1})
                           .rank(0, {{-kFar}, {kFar}})
                           .rank(1, {{-kFar}})
                           .job()),
              ElementsAre(fmt::format("#{}: 0.0 1.0", -kFar),
                          fmt::format("#{}: 0.1 absent 1 pending 1", kFar)));
}

TEST(CollectiveTable, NumbersThatFallAreOfTheNextIncarnation) {
  // Rank 1 waits in the group's first incarnation, rank 2's ring has lost it.
  EXPECT_THAT(
      table_of(JobMaker()
                   .group("0", {0, 1, 2})
                   .rank(0, {{1}, {2}, {1, "nccl:broadcast", kWaiting}})
                   .rank(1, {{1}, {2, "nccl:all_reduce", kWaiting}})
                   .rank(2, {{1, "nccl:broadcast", kWaiting}}, 9)
                   .job()),
      ElementsAre("#1: 0.0 1.0 unknown 1", "#2: 0.1 1.1 unknown 1 pending 1",
                  "#1: 0.2 2.0 absent 1 pending 2"));
}

TEST(CollectiveTable, AReceiveFromAnyRankLeavesThePartnerOpen) {
  EXPECT_THAT(table_of(JobMaker()
                           .group("0", {0, 1})
                           .rank(0, {{1, "nccl:send 0->1", kWaiting, 4, 1}})
                           .rank(1, {{1, "nccl:recvAnysource", kWaiting, 4, 1},
                                     {1, "nccl:recv 1<-0", kWaiting, 4, 2}})
                           .job()),
              testing::Contains("0->1 1: 0.0 unknown 1 pending 1"));
}

// Each entry of a real job belongs to at most one collective, and each rank
// to exactly one count of it.
TEST(CollectiveTable, CountsEachRankOfRealJobsOnce) {
  for (const std::string name :
       {"nccl_tp_fsdp", "nccl_long_run", "nccl_pipeline_stall",
        "nccl_p2p_ring_coalesced", "nccl_wrapped", "gloo_mesh_hang"}) {
    const std::vector<std::string> paths = {std::string(TEST_DATA) +
                                            "/flight/" + name};
    const Result<Job> job = load_job(paths, {}, {});
    ASSERT_TRUE(job) << name;
    const Matching matching(*job);
    const CollectiveTable table = tabulate(matching);
    std::vector<std::vector<int>> uses;
    for (const RankDump& dump : job->ranks)
      uses.emplace_back(dump.entries.size());
    for (const Match& match : table.matches)
      ++uses[match.rank][match.entry];
    for (const Collective& row : table.collectives) {
      EXPECT_LE(row.joined + row.absent + row.without_dump, row.expected);
      EXPECT_EQ(row.scheduled + row.started + row.completed, row.joined);
    }
    for (std::size_t r = 0; r < uses.size(); ++r) {
      const EntryRoles roles = matching.roles(r);
      for (std::size_t i = 0; i < uses[r].size(); ++i) {
        const EntryRole role = roles.roles[i];
        const bool belongs =
            role != EntryRole::kMessagesEnd && role != EntryRole::kOther;
        EXPECT_EQ(uses[r][i], belongs ? 1 : 0) << name << " " << r << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace postflight
