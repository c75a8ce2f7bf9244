#include "report/flight/entries_text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flight/job_maker.h"

namespace postflight {
namespace {

constexpr State kDone = State::kCompleted;
constexpr State kWaiting = State::kScheduled;

struct Wish {
  EntryFilterOptions filter = {};
  EntriesGridOptions grid = {};
  std::size_t width = 80;
  bool colour = false;
};

// Without the lines about the whole job.
std::string shown(const Job& job, const Wish& wish = {}) {
  const EntryFilter filter(job, wish.filter);
  Terminal terminal;
  terminal.width = wish.width;
  terminal.colour = wish.colour;
  terminal.unicode = true;
  std::string text;
  {
    Output out([&text](std::string_view piece) { text += piece; });
    write_entries(Matching(job), filter, wish.grid, terminal, out);
  }
  return text.substr(text.find("\n\n") + 1);
}

TEST(EntriesText, AlignsByNumberAndNotByRow) {
  EXPECT_EQ(shown(JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, {{1}, {2}, {3, "nccl:all_reduce", kWaiting}})
                      .rank(1, {{1}, {2}, {3, "nccl:all_reduce", kWaiting}})
                      .rank(2, {{2}}, 9)
                      .job()),
            R"(
group 0 0_description: ranks 0-3
  no dump of rank 3
  ?: overwritten; from #2 on all ranks are known
      operation          0-1        2
  #1  all_reduce f32[4]  completed  ?
  #2  all_reduce f32[4]  completed  completed
  #3  all_reduce f32[4]  scheduled  -
)");
}

TEST(EntriesText, FoldsAThousandRanks) {
  JobMaker maker;
  std::vector<int> all;
  for (int rank = 0; rank < 1024; ++rank)
    all.push_back(rank);
  maker.group("0", all);
  // Every ring begins elsewhere; three ranks are one behind.
  for (int rank = 0; rank < 1024; ++rank) {
    std::vector<MadeEntry> entries;
    const bool behind = rank % 300 == 7;
    for (std::int64_t i = 1 + rank % 3; i <= (behind ? 4 : 5); ++i)
      entries.push_back({i});
    maker.rank(rank, entries, 10 + rank);
  }
  EXPECT_EQ(shown(maker.job()), R"(
group 0 0_description: ranks 0-1023
  ?: overwritten; from #3 on all ranks are known
  set 1: ranks 0-6,8-306,308-606,608-906,908-1023
      operation          set 1      7-907:300
  #1  all_reduce f32[4]  completed  ?
  #2  all_reduce f32[4]  completed  completed
  #3  all_reduce f32[4]  completed  completed
  #4  all_reduce f32[4]  completed  completed
  #5  all_reduce f32[4]  completed  -
)");
}

TEST(EntriesText, ShowsMessagesBetweenTheCollectives) {
  const Job job =
      JobMaker()
          .group("0", {0, 1})
          .rank(0, {{1},
                    {1, "nccl:send 0->1", kWaiting, 4, 1},
                    {1, "nccl:coalesced", kDone, 4, 1},
                    {2}})
          .rank(1, {{1}, {1, "nccl:recv 1<-0", kWaiting, 4, 1}, {2}})
          .job();
  EXPECT_EQ(shown(job), R"(
group 0 0_description: ranks 0-1
        operation          0                         1
  #1    all_reduce f32[4]  completed                 completed
  #1+1                     send->1 f32[4] completed  recv<-0 f32[4] scheduled
  #1+2                     coalesced completed
  #2    all_reduce f32[4]  completed                 completed
)");
}

TEST(EntriesText, CallsPeersByTheirRankInTheJob) {
  EXPECT_EQ(shown(JobMaker()
                      .group("0", {0, 4})
                      .group("1", {1, 5})
                      .rank(0, {{0, "nccl:send 0->1", kWaiting, 4, 1, 0}})
                      .rank(1, {{0, "nccl:send 0->1", kWaiting, 4, 1, 1}})
                      .rank(4, {{0, "nccl:recv 1<-0", kWaiting, 4, 1, 0}})
                      .rank(5, {{0, "nccl:recv 1<-0", kWaiting, 4, 1, 1}})
                      .job(),
                  {.width = 100}),
            R"(
group 0 0_description: ranks 0,4
        0                         4
  #0+1  send->4 f32[4] scheduled  recv<-0 f32[4] scheduled

group 1 1_description: ranks 1,5
        1                         5
  #0+1  send->5 f32[4] scheduled  recv<-1 f32[4] scheduled
)");
}

TEST(EntriesText, KeepsIncarnationsOfAGroupApart) {
  const std::vector<MadeEntry> twice = {
      {1}, {2}, {3}, {1}, {2, "nccl:broadcast", kWaiting}};
  EXPECT_EQ(shown(JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, twice)
                      .rank(1, {{1}, {2}, {3}})
                      .rank(2, {{3}, {1}, {2, "nccl:broadcast", kWaiting}}, 7)
                      .rank(3, {{1}}, 9)
                      .job()),
            R"(
group 0 0_description: ranks 0-3
  ?: overwritten; from #1 on all ranks are known
  @1, @2, ...: before the group was created again; ?: not known who took part
        operation          0,2        1          3
  #1@1  all_reduce f32[4]  completed  completed  ?
  #2@1  all_reduce f32[4]  completed  completed  ?
  #3@1  all_reduce f32[4]  completed  completed  ?
  #1    all_reduce f32[4]  completed  -          completed
  #2    broadcast f32[4]   scheduled  -          -
)");
}

TEST(EntriesText, AlignsABatchWhoseBeginningWasOverwrittenAtItsEnd) {
  const MadeEntry end = {1, "nccl:coalesced"};
  EXPECT_EQ(
      shown(
          JobMaker()
              .group("0", {0, 1, 2})
              .rank(0, {{1, "nccl:a"}, {1, "nccl:b"}, {1, "nccl:c"}, end, {2}})
              .rank(1, {{1, "nccl:b"}, {1, "nccl:c"}, end, {2}}, 5)
              .rank(2, {end, {2}}, 7)
              .job()),
      R"(
group 0 0_description: ranks 0-2
  ?: overwritten; from #2 on all ranks are known
        operation          0-2
  #1    a f32[4]           completed
  #1.2  b f32[4]           completed
  #1.3  c f32[4]           completed
  #1.4  coalesced          completed
  #2    all_reduce f32[4]  completed
)");
}

TEST(EntriesText, WrapsColumnsInANarrowTerminal) {
  const Job job =
      JobMaker()
          .group("0", {0, 1, 2})
          .rank(0, {{1}, {2, "nccl:broadcast", kWaiting}})
          .rank(1, {{1}, {2, "nccl:a_long_name_of_an_operation", kWaiting}})
          .rank(2, {{1}, {2, "nccl:broadcast", kDone}})
          .job();
  EXPECT_EQ(shown(job, {.width = 40}), R"(
group 0 0_description: ranks 0-2
      operation         0
  #1  all_reduce f32[…  completed
  #2  broadcast f32[4]  scheduled

      operation         1
  #1  all_reduce f32[…  completed
  #2  broadcast f32[4]  a_long_name_of_…

      operation         2
  #1  all_reduce f32[…  completed
  #2  broadcast f32[4]  completed
)");
}

TEST(EntriesText, AFilterPicksRowsAndShowsThemWhole) {
  const Job job = JobMaker()
                      .group("0", {0, 1})
                      .rank(0, {{1}, {2, "nccl:all_reduce", kWaiting}})
                      .rank(1, {{1}, {2}})
                      .job();
  EXPECT_EQ(shown(job, {.filter = {.states = {kWaiting}}}), R"(
group 0 0_description: ranks 0-1
      operation          0          1
  #2  all_reduce f32[4]  scheduled  completed
)");
  EXPECT_EQ(shown(job, {.filter = {.operations = {"nothing"}}}),
            "\nno entry is as asked for\n");
}

TEST(EntriesText, ShowsTheLastRowsOfEachGroup) {
  const Job job = JobMaker()
                      .group("0", {0})
                      .group("1", {0})
                      .rank(0, {{1},
                                {2},
                                {3},
                                {8, "nccl:x", kDone, 4, 0, 1},
                                {9, "nccl:x", kDone, 4, 0, 1}})
                      .job();
  EXPECT_EQ(shown(job, {.grid = {.last = 1}}), R"(
group 0 0_description: rank 0
      operation          0
  #3  all_reduce f32[4]  completed

group 1 1_description: rank 0
      operation  0
  #9  x f32[4]   completed
)");
}

TEST(EntriesText, EscapesWhatAFileSays) {
  const std::string text = shown(JobMaker()
                                     .group("\x1b[2J", {0})
                                     .rank(0, {{1, "nccl:\x1b]0;x\x07"}})
                                     .job(),
                                 {.colour = true});
  EXPECT_EQ(text.find("\x1b[2J"), text.npos);
  EXPECT_EQ(text.find("\x1b]"), text.npos);
  EXPECT_NE(text.find("\\u{1b}]0;x\\u{7}"), text.npos);
}

}  // namespace
}  // namespace postflight
