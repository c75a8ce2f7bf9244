#include "joblog/progress_line.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "5(mesh_tp) place 1 #45 ALLREDUCE 128->128 failed 45 enqueued 46 done 44"
std::string progress_of(std::string_view text) {
  const std::optional<ProgressLine> line = read_progress_line(text);
  if (!line)
    return "nothing";
  std::string shown =
      line->named ? fmt::format("{}({})", line->group, line->description)
                  : "unnamed";
  if (line->place)
    shown += fmt::format(" place {}", line->place->value);
  if (line->timed_out)
    shown += fmt::format(" #{} {} {}->{}", line->timed_out->sequence,
                         line->timed_out->type, line->timed_out->inputs,
                         line->timed_out->outputs);
  if (line->failed)
    shown += fmt::format(" failed {}", *line->failed);
  if (line->enqueued)
    shown += fmt::format(" enqueued {}", *line->enqueued);
  if (line->completed)
    shown += fmt::format(" done {}", *line->completed);
  if (line->members)
    shown += fmt::format(" of {}", *line->members);
  return shown;
}

TEST(ProgressLine, ReadsTimeoutsOfEachVersion) {
  EXPECT_EQ(
      progress_of("[Rank 7] Watchdog caught collective operation timeout: "
                  "WorkNCCL(SeqNum=96117, OpType=ALLREDUCE, "
                  "Timeout(ms)=1800000) ran for 1800251 milliseconds before "
                  "timing out."),
      "unnamed place 7 #96117 ALLREDUCE -1->-1");
  EXPECT_EQ(progress_of("[E ProcessGroupNCCL.cpp:523] [Rank 2] Watchdog caught "
                        "collective operation timeout: WorkNCCL(SeqNum=5, "
                        "OpType=_ALLGATHER_BASE, NumelIn=4, NumelOut=16, "
                        "Timeout(ms)=600000) ran for 600029 milliseconds"),
            "unnamed place 2 #5 _ALLGATHER_BASE 4->16");
  EXPECT_EQ(progress_of("what():  [PG 3 Rank 5] Process group watchdog thread "
                        "terminated with exception: [Rank 5] Watchdog caught "
                        "collective operation timeout: WorkHCCL(SeqNum=9, "
                        "OpType=BROADCAST, NumelIn=1, NumelOut=1, "
                        "Timeout(ms)=1000) ran for 1001 milliseconds"),
            "3() place 5 #9 BROADCAST 1->1");
}

TEST(ProgressLine, ReadsTheStatusOfEachVersion) {
  EXPECT_EQ(
      progress_of("[PG 0 (default_pg) Rank 1] Exception (either an error or "
                  "timeout) detected by watchdog at work: 5, last enqueued "
                  "NCCL work: 6, last completed NCCL work: 4."),
      "0(default_pg) place 1 failed 5 enqueued 6 done 4");
  EXPECT_EQ(
      progress_of("[PG 1 Rank 1] Timeout at NCCL work: 7, last enqueued NCCL "
                  "work: 8, last completed NCCL work: 6."),
      "1() place 1 failed 7 enqueued 8 done 6");
  EXPECT_EQ(
      progress_of("[PG ID 2 PG GUID 3 Rank 3] Exception (either an error or "
                  "timeout) detected by watchdog at work: 31, last enqueued "
                  "NCCL work: 58, last completed NCCL work: 30."),
      "3() place 3 failed 31 enqueued 58 done 30");
  EXPECT_EQ(
      progress_of("[PG ID 2 PG GUID 5(mesh_tp) Rank 1]  failure detected by "
                  "watchdog at work sequence id: 45 PG status: last enqueued "
                  "work: 46, last completed work: 44"),
      "5(mesh_tp) place 1 failed 45 enqueued 46 done 44");
  EXPECT_EQ(
      progress_of("[PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump "
                  "signal due to a collective timeout from  rank 2 and we will "
                  "try our best to dump the debug info. Last enqueued NCCL "
                  "work: 4, last completed NCCL work: 4.This is most likely"),
      "0(default_pg) place 3 enqueued 4 done 4");
}

TEST(ProgressLine, LeavesOutWhatIsNotTheStateAtTheEnd) {
  EXPECT_EQ(
      progress_of("[PG 0 Rank 1] NCCL Work update periodically: last enqueued "
                  "NCCL work: 6, last completed NCCL work: 4."),
      "nothing");
  EXPECT_EQ(progress_of("Rank 3 has loaded its data"), "nothing");
  EXPECT_EQ(progress_of("last enqueued work: 5 Rank x]"), "nothing");
  EXPECT_EQ(progress_of("[Rank 1] WorkNCCL(SeqNum=-4, OpType=X)"), "nothing");
}

TEST(ProgressLine, ReadsTheSizeOfAGroup) {
  EXPECT_EQ(
      progress_of("[PG ID 1 PG GUID 4 Rank 0] ProcessGroupNCCL initialization "
                  "options: size: 8, global rank: 3, TIMEOUT(ms): 600000"),
      "4() place 0 of 8");
}

TEST(ProgressLine, ReadsFingerprints) {
  const std::vector<LoggedCall> calls = read_fingerprints(
      "Detected mismatch between collectives on ranks. Rank 1 is running "
      "collective: CollectiveFingerPrint(SequenceNumber=485, "
      "OpType=ALLREDUCE, TensorShape=[25, 2], TensorDtypes=Float, "
      "TensorDeviceTypes=x), but Rank 7 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=0OpType=REDUCE).Collectives");
  ASSERT_EQ(calls.size(), 2);
  EXPECT_EQ(calls[0].place, Rank{1});
  EXPECT_EQ(calls[0].operation.sequence, 485);
  EXPECT_EQ(calls[0].operation.type, "ALLREDUCE");
  EXPECT_EQ(calls[0].operation.inputs, 50);
  EXPECT_EQ(calls[0].operation.dtype, "Float");
  EXPECT_EQ(calls[1].place, Rank{7});
  EXPECT_EQ(calls[1].operation.type, "REDUCE");
  EXPECT_EQ(calls[1].operation.inputs, -1);
}

TEST(ProgressLine, ReadsClaims) {
  const auto ranks = [](std::string_view text) {
    const std::optional<LoggedClaim> claim = read_claim(text);
    return claim ? claim->places : std::vector<Rank>();
  };
  EXPECT_THAT(ranks("[Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in "
                    "2000 ms"),
              ElementsAre(Rank{4}, Rank{5}));
  EXPECT_THAT(ranks("Rank 1 failed to pass monitoredBarrier in 2000 ms"),
              ElementsAre(Rank{1}));
  EXPECT_THAT(ranks("     [7] finished collective #182, but didn't join "
                    "collective #183 (count from 1)"),
              ElementsAre(Rank{7}));
  EXPECT_THAT(ranks("- To our best knowledge, ranks [1, 2] are the lagging "
                    "ranks that caused this timeout. They never joined any"),
              ElementsAre(Rank{1}, Rank{2}));
  EXPECT_THAT(ranks("Ranks x failed to pass monitoredBarrier"), IsEmpty());
  EXPECT_THAT(ranks("] finished collective #"), IsEmpty());
}

TEST(ProgressLine, ReadsTheSizeOfTheJob) {
  EXPECT_EQ(read_world_size("rank 3 nranks 8 cudaDev 3"), 8);
  EXPECT_EQ(read_world_size("GLOBAL_RANK: 3, MEMBER: 4/16"), 16);
  EXPECT_EQ(read_world_size("world_size=99999999999"), std::nullopt);
  EXPECT_EQ(read_world_size("world_size=-1"), std::nullopt);
}

// Every part of a line is tried alone, too.
TEST(ProgressLine, TakesAnyPartOfALine) {
  const std::string line =
      "[PG ID 2 PG GUID 5(mesh_tp) Rank 1] [Rank 1] WorkNCCL(SeqNum=5, "
      "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=6) at work "
      "sequence id: 4 PG status: last enqueued work: 6, last completed work: "
      "4 Rank 1 is running collective: CollectiveFingerPrint(OpType=A, "
      "TensorShape=[1, 2]) but Rank 2 is running collective: B [1, 2] "
      "finished collective #1, but didn't join collective #2 nranks 8";
  for (std::size_t begin = 0; begin < line.size(); ++begin)
    for (const std::size_t size :
         {std::size_t{7}, std::size_t{80}, line.size()}) {
      const std::string part = line.substr(begin, size);
      read_progress_line(part);
      read_fingerprints(part);
      read_claim(part);
      read_world_size(part);
    }
}

}  // namespace
}  // namespace postflight
