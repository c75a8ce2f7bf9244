#include "api/log_verdict.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/trace.h"
#include "base/test_files.h"
#include "flight/model/rank_set.h"

namespace postflight {
namespace {

using testing::HasSubstr;

Investigation of_logs(std::vector<std::string> logs) {
  return must(
      investigate({.dumps = {}, .logs = std::move(logs)}, {.threads = 1}));
}

std::string sample(std::string_view name) {
  return fmt::format("{}/logs/{}", TEST_DATA, name);
}

// "never_joined 2 likely"
std::string answer(const Verdict& verdict) {
  return fmt::format("{} {} {}", kind_name(verdict.kind),
                     rank_set_text(verdict.culprits),
                     confidence_name(verdict.confidence));
}

std::string answer_to(const std::string& text) {
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "job.log", text);
  return answer(of_logs({folder.path() / "job.log"}).verdict);
}

std::string timeout(int rank, int place, int sequence, int elements = 128,
                    std::string_view type = "ALLREDUCE") {
  return fmt::format(
      "[rank{}]:[E1115 09:41:12.408271257 ProcessGroupNCCL.cpp:683] [Rank {}] "
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, "
      "OpType={}, NumelIn={}, NumelOut={}, Timeout(ms)=600000) ran for 600040 "
      "milliseconds before timing out.\n",
      rank, place, sequence, type, elements, elements);
}

std::string status(int rank, std::string_view group, int place, int failed,
                   int enqueued, int completed) {
  return fmt::format(
      "[rank{}]:[E1115 09:41:12.418271257 ProcessGroupNCCL.cpp:2241] [{} Rank "
      "{}]  failure detected by watchdog at work sequence id: {} PG status: "
      "last enqueued work: {}, last completed work: {}\n",
      rank, group, place, failed, enqueued, completed);
}

std::string dump_signal(int rank, int enqueued, int completed) {
  return fmt::format(
      "[rank{}]:[E1115 09:41:13.018884254 ProcessGroupNCCL.cpp:1858] [PG ID 0 "
      "PG GUID 0(default_pg) Rank {}] Received a dump signal due to a "
      "collective timeout from  rank 0 and we will try our best to dump the "
      "debug info. Last enqueued NCCL work: {}, last completed NCCL work: "
      "{}.This\n",
      rank, rank, enqueued, completed);
}

constexpr std::string_view kWorld = "PG ID 0 PG GUID 0(default_pg)";

std::string waits(int rank, int sequence, int elements = 128,
                  std::string_view type = "ALLREDUCE") {
  return timeout(rank, rank, sequence, elements, type) +
         status(rank, kWorld, rank, sequence, sequence, sequence - 1);
}

TEST(LogVerdict, NamesWhoseMonitorSaysThatItDidNotCome) {
  const Investigation found = of_logs({sample("never_joined.log")});
  EXPECT_EQ(answer(found.verdict), "never_joined 2 likely");
  EXPECT_EQ(found.verdict.summary,
            "rank 2 never joined all_reduce #412 of default_pg; 3 of 4 ranks "
            "wait for it");
  EXPECT_EQ(found.verdict.sequence, 412);
  EXPECT_TRUE(is_problem(found.verdict));
  for (const Evidence& evidence : found.verdict.evidence) {
    EXPECT_EQ(evidence.witness, Witness::kLog);
    EXPECT_THAT(evidence.where, HasSubstr("never_joined.log:"));
  }
}

TEST(LogVerdict, AccusesNobodyWhereAllWait) {
  EXPECT_EQ(answer(of_logs({sample("all_joined.log")}).verdict),
            "all_joined_stuck none possible");
}

TEST(LogVerdict, ComparesSizes) {
  EXPECT_EQ(answer(of_logs({sample("sizes_differ.log")}).verdict),
            "size_mismatch 3 likely");
}

TEST(LogVerdict, ComparesTypes) {
  EXPECT_EQ(answer_to(waits(0, 9) + waits(1, 9) + waits(2, 9, 1, "BROADCAST") +
                      waits(3, 9)),
            "type_mismatch 2 likely");
}

TEST(LogVerdict, ReadsFingerprints) {
  EXPECT_EQ(answer(of_logs({sample("fingerprints.log")}).verdict),
            "type_mismatch 2 likely");
}

TEST(LogVerdict, BelievesADesyncReportOverNumbersThatDoNotFit) {
  EXPECT_EQ(answer(of_logs({sample("desync.log")}).verdict),
            "never_joined 7 likely");
}

TEST(LogVerdict, NamesWhoRaised) {
  const Investigation found = of_logs({sample("raised.log")});
  EXPECT_EQ(answer(found.verdict), "no_dump 1 likely");
  EXPECT_EQ(
      found.verdict.summary,
      "rank 1 ended first: OSError: [Errno 5] shard-00017.tar at "
      "/job/data.py:88; 3 of 4 ranks wait in all_reduce #4 of default_pg");
  ASSERT_FALSE(found.verdict.evidence.empty());
  EXPECT_EQ(found.verdict.evidence[0].rank, Rank{1});
  EXPECT_THAT(found.verdict.evidence[0].message, HasSubstr("OSError"));
}

TEST(LogVerdict, DoesNotTakeSilenceForGuilt) {
  // Its launcher may have ended it before its own watchdog gave up.
  EXPECT_EQ(
      answer_to(waits(0, 9) + waits(1, 9) + waits(3, 9) + "[rank2]: step 1\n"),
      "inconclusive none possible");
}

TEST(LogVerdict, DoesNotCallAGroupCompleteWhoseSizeIsNotKnown) {
  EXPECT_EQ(answer_to(waits(0, 9) + waits(1, 9) + waits(2, 9)),
            "inconclusive none possible");
  EXPECT_EQ(answer_to("[rank0]: world_size=8\n" + waits(0, 9) + waits(1, 9)),
            "inconclusive none possible");
}

// Numbers of point-to-point operations say nothing of collectives.
TEST(LogVerdict, DoesNotMixTransfersAndCollectives) {
  EXPECT_EQ(answer_to(waits(0, 9) + waits(1, 9) + waits(2, 9) +
                      timeout(3, 3, 55, 128, "RECV") +
                      status(3, kWorld, 3, 55, 55, 54) + dump_signal(3, 8, 8)),
            "inconclusive none possible");
}

TEST(LogVerdict, DoesNotAccuseByANumberThatIsNotTheOneBefore) {
  EXPECT_EQ(answer_to(waits(0, 90) + waits(1, 90) + waits(2, 90) +
                      dump_signal(3, 40, 40)),
            "inconclusive none possible");
}

// torch 2.2 and 2.3 print it before anything is done.
TEST(LogVerdict, ReadsNumbersThatWereNeverSet) {
  std::string text;
  for (const int rank : {0, 1, 2, 3})
    text += fmt::format(
        "[rank{}]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank {}] Timeout at NCCL "
        "work: 1, last enqueued NCCL work: 1, last completed NCCL work: "
        "76280750235782912.\n",
        rank, rank);
  EXPECT_EQ(answer_to(text), "inconclusive none possible");
}

TEST(LogVerdict, TakesNoAbortForTheCause) {
  EXPECT_EQ(
      answer_to(waits(0, 9) + waits(1, 9) + waits(2, 9) + waits(3, 9) +
                "Root Cause (first observed failure):\n[0]:\n"
                "  time      : 2026-11-15_09:41:20\n  host      : gpu17\n"
                "  rank      : 1 (local_rank: 1)\n"
                "  exitcode  : -6 (pid: 812917)\n  error_file: <N/A>\n"
                "  traceback : Signal 6 (SIGABRT) received by PID 812917\n"
                "==========\n"),
      "all_joined_stuck none possible");
}

TEST(LogVerdict, TakesALostConnectionForAConsequence) {
  EXPECT_EQ(
      answer_to("[rank0]: Traceback (most recent call last):\n"
                "[rank0]:   File \"train.py\", line 40, in <module>\n"
                "[rank0]: RuntimeError: [/gloo/transport/tcp/pair.cc:525] "
                "Connection closed by peer [10.0.0.3]:35521\n"
                "[rank3]: Traceback (most recent call last):\n"
                "[rank3]:   File \"train.py\", line 33, in <module>\n"
                "[rank3]: KeyError: 'labels'\n"
                "[rank1]: step 2\n[rank2]: step 2\n"),
      "no_dump 3 possible");
}

TEST(LogVerdict, NamesNobodyIfMostRaise) {
  std::string text;
  for (const int rank : {0, 1, 2, 3})
    text += fmt::format(
        "[rank{0}]: Traceback (most recent call last):\n[rank{0}]:   File "
        "\"train.py\", line 33, in <module>\n[rank{0}]: KeyError: 'labels'\n",
        rank);
  EXPECT_EQ(answer_to(text), "inconclusive none possible");
}

// Group and rank in the group are all that a line of a mesh has.
TEST(LogVerdict, NamesWhoAloneHasNothingInProgressInAMesh) {
  EXPECT_EQ(answer(of_logs({sample("mesh.log")}).verdict),
            "never_joined 5 possible");
}

TEST(LogVerdict, SaysThatALogTellsNothing) {
  const Investigation found = of_logs({sample("quiet.log")});
  EXPECT_EQ(answer(found.verdict), "inconclusive none possible");
  EXPECT_EQ(found.verdict.summary,
            "the logs (3 lines) say nothing of how the job ended");
  EXPECT_FALSE(is_problem(found.verdict));
}

TEST(LogVerdict, ReadsAFolderOfTorchrun) {
  const TemporaryFolder folder = scratch_folder();
  for (const int rank : {0, 1, 2, 3}) {
    const std::filesystem::path own =
        folder.path() / "none_x" / "attempt_0" / std::to_string(rank);
    std::filesystem::create_directories(own);
    write_file(own / "stdout.log", "step 1\n");
    write_file(own / "stderr.log", rank == 2 ? "" : waits(rank, 9));
    if (rank == 2)
      write_file(own / "error.json",
                 R"({"message": {"message": "KeyError: 'x'", "extraInfo": )"
                 R"({"py_callstack": "Traceback (most recent call last):\n  )"
                 R"(File \"train.py\", line 7, in main\n    y = d['x']\n)"
                 R"(KeyError: 'x'\n", "timestamp": "1794726000"}}})");
  }
  const Verdict verdict = of_logs({folder.path()}).verdict;
  EXPECT_EQ(answer(verdict), "no_dump 2 likely");
  EXPECT_THAT(verdict.summary,
              HasSubstr("rank 2 ended first: KeyError: 'x' at train.py:7"));
}

TEST(LogVerdict, IgnoresAnEarlierAttempt) {
  const auto at = [](std::string text, std::string_view time) {
    for (std::size_t place = text.find("1115 09:"); place != text.npos;
         place = text.find("1115 09:", place + 1))
      text.replace(place + 5, 2, time);
    return "2026-11-15 00:00:00 start\n" + text;
  };
  EXPECT_EQ(
      answer_to(
          at(waits(0, 5) + waits(1, 5) + waits(2, 5) + dump_signal(3, 4, 4),
             "05") +
          at(waits(0, 9) + waits(1, 9) + dump_signal(2, 8, 8) + waits(3, 9),
             "09")),
      "never_joined 2 likely");
}

std::string says(int rank, std::string_view time, std::string_view text) {
  return fmt::format("[rank{}]: 2026-11-15 {} {}\n", rank, time, text);
}

TEST(LogVerdict, NamesWhoWentOnWhenAllOthersHadGivenUp) {
  const std::string others =
      "2026-11-15 09:00:00 start\n" + waits(0, 9) + waits(1, 9) + waits(3, 9);
  EXPECT_EQ(answer_to(others + says(2, "09:41:20,000", "reading shard 7")),
            "never_joined 2 likely");
  // It could have given up within the next second.
  EXPECT_EQ(answer_to(others + says(2, "09:41:13,000", "reading shard 7")),
            "inconclusive none possible");
  // Two that do not wait are not told from two that were ended.
  EXPECT_EQ(
      answer_to("2026-11-15 09:00:00 start\n" + waits(0, 9) + waits(1, 9) +
                says(2, "09:41:20,000", "x") + says(3, "09:41:20,000", "x")),
      "inconclusive none possible");
}

TEST(LogVerdict, TakesNoEndForOneAfterWhichTheRankWentOn) {
  const std::string raised =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"train.py\", line 19, in <module>\n"
      "[rank1]: KeyError: 'size'\n";
  const std::string before = says(1, "08:00:00,000", "start") + raised;
  EXPECT_EQ(answer_to(before + says(0, "08:00:02,000", "step 1")),
            "no_dump 1 likely");
  EXPECT_EQ(answer_to(before + says(1, "08:05:00,000", "step 9")),
            "inconclusive none possible");
}

TEST(LogVerdict, JudgesTheLastAttemptOfTorchrun) {
  const auto killed = [](int rank) {
    return fmt::format(
        "[rank{0}]: Traceback (most recent call last):\n"
        "[rank{0}]:   File \"train.py\", line 19, in <module>\n"
        "[rank{0}]: KeyError: 'size'\n",
        rank);
  };
  EXPECT_EQ(
      answer_to(killed(1) +
                "INFO:torch.distributed.elastic.agent.server.api:[default] "
                "Worker group FAILED. 2/3 attempts left; will restart worker "
                "group\n" +
                killed(3) + "[rank0]: x\n[rank2]: x\n"),
      "no_dump 3 likely");
}

std::string reached(int rank, int place) {
  return fmt::format(
      "[rank{}]: RuntimeError: Rank {} successfully reached monitoredBarrier, "
      "but received errors while waiting for send/recv from rank 0. Please "
      "check rank 0 logs for faulty rank.\n",
      rank, place);
}

TEST(LogVerdict, NamesWhoDidNotComeToABarrier) {
  const std::string missed =
      "[rank0]: RuntimeError: [Rank 0]: Ranks 2 failed to pass "
      "monitoredBarrier in 2000 ms\n";
  EXPECT_EQ(answer_to(missed + reached(1, 1) + reached(3, 3)),
            "never_joined 2 likely");
  // Rank 2 of a group is not rank 2 of the job.
  EXPECT_EQ(answer_to(missed + reached(4, 1) + reached(12, 3) +
                      "[rank2]: x\n[rank13]: x\n"),
            "inconclusive none possible");
  // Nor need it be where nothing shows that the group is that of all ranks.
  EXPECT_EQ(answer_to(missed + reached(1, 1) + "[rank15]: x\n"),
            "inconclusive none possible");
  // It came to another barrier.
  EXPECT_EQ(answer_to(missed + reached(1, 1) + reached(3, 3) + reached(2, 2)),
            "inconclusive none possible");
  EXPECT_EQ(answer_to(reached(1, 1) + reached(2, 2) + reached(3, 3)),
            "never_joined 0 likely");
}

std::string compares(int rank, int place, std::string_view type, int other,
                     std::string_view others_type) {
  const auto print = [](std::string_view called) {
    return fmt::format(
        "CollectiveFingerPrint(SequenceNumber=7, OpType={}, TensorShape=[25], "
        "TensorDtypes=Float, TensorDeviceTypes=x)",
        called);
  };
  return fmt::format(
      "[rank{}]: RuntimeError: Detected mismatch between collectives on ranks. "
      "Rank {} is running collective: {}, but Rank {} is running collective: "
      "{}.\n",
      rank, place, print(type), other, print(others_type));
}

// Ranks 4 to 7 are 0 to 3 in their group.
TEST(LogVerdict, NamesTheRankInTheJobOfACallThatDiffers) {
  EXPECT_EQ(answer_to(compares(4, 0, "ALLREDUCE", 2, "REDUCE") +
                      compares(5, 1, "ALLREDUCE", 2, "REDUCE") +
                      compares(6, 2, "REDUCE", 0, "ALLREDUCE") +
                      compares(7, 3, "ALLREDUCE", 2, "REDUCE")),
            "type_mismatch 6 likely");
}

// Without a name of the group, a place in its second half tells.
TEST(LogVerdict, FindsTheGroupOfAllByItsSize) {
  const auto plain = [](int rank, int place, std::string_view type,
                        int number) {
    return fmt::format(
        "[rank{}]: [E ProcessGroupNCCL.cpp:821] [Rank {}] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, "
        "NumelIn=1, NumelOut=1, Timeout(ms)=1) ran for 2 milliseconds before "
        "timing out.\n",
        rank, place, number, type);
  };
  EXPECT_EQ(
      answer_to(plain(0, 0, "ALLREDUCE", 9) + plain(1, 1, "ALLREDUCE", 9) +
                plain(2, 2, "ALLREDUCE", 9) + plain(3, 3, "BROADCAST", 9) +
                plain(1, 0, "ALLTOALL", 70)),
      "type_mismatch 3 likely");
}

TEST(LogVerdict, DoesNotTakeALineThatWasCutForADifference) {
  std::string cut = timeout(2, 2, 9);
  cut.resize(cut.find("NumelOut=") + 10);
  EXPECT_EQ(answer_to(waits(0, 9) + waits(1, 9) + cut + "\n" +
                      status(2, kWorld, 2, 9, 9, 8) + waits(3, 9)),
            "all_joined_stuck none possible");
}

TEST(LogVerdict, SaysWhatIsNoLog) {
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "dump", "\x80\x02}q\x01.");
  write_file(folder.path() / "empty", "");
  const Investigation found =
      of_logs({folder.path() / "dump", folder.path() / "empty"});
  ASSERT_EQ(found.verdict.findings.size(), 2);
  EXPECT_EQ(found.verdict.findings[0].kind, "log_is_dump");
  EXPECT_EQ(found.verdict.findings[1].kind, "log_empty");
}

// Three of four ranks left no dump, so the dumps alone name nobody.
TEST(LogVerdict, ExplainsWhoLeftNoDump) {
  const std::string dump =
      std::string(TEST_DATA) + "/flight/nccl_missing_rank/nccl_trace_rank_0";
  EXPECT_EQ(
      answer(must(investigate({.dumps = {dump}}, {.threads = 1})).verdict),
      "inconclusive none likely");
  const Investigation found = must(investigate(
      {.dumps = {dump}, .logs = {sample("crashed_rank.log")}}, {.threads = 1}));
  EXPECT_EQ(answer(found.verdict), "no_dump 1 likely");
  ASSERT_FALSE(found.verdict.evidence.empty());
  EXPECT_EQ(found.verdict.evidence[0].witness, Witness::kLog);
  EXPECT_THAT(found.verdict.evidence[0].message, HasSubstr("OSError"));
}

TEST(LogVerdict, DoesNotTakeADumpThatCannotBeReadForNone) {
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path from =
      std::string(TEST_DATA) + "/flight/nccl_crashed_rank";
  for (const char* const rank : {"0", "2", "3"})
    std::filesystem::copy_file(
        from / (std::string("nccl_trace_rank_") + rank),
        folder.path() / (std::string("nccl_trace_rank_") + rank));
  write_file(folder.path() / "nccl_trace_rank_1", "no dump at all, but a text");
  const Investigation found =
      must(investigate({.dumps = {folder.path()}}, {.threads = 1}));
  EXPECT_EQ(answer(found.verdict), "inconclusive none likely");
  EXPECT_THAT(found.verdict.summary, HasSubstr("the dump of rank 1 can't be "
                                               "read"));
  EXPECT_TRUE(
      std::ranges::any_of(found.verdict.findings, [](const Finding& finding) {
        return finding.kind == "unreadable_dump";
      }));
  ASSERT_EQ(found.verdict.ranks.size(), 4U);
  EXPECT_EQ(found.verdict.ranks[1].rank, Rank{1});
  EXPECT_EQ(found.verdict.ranks[1].state, RankState::kUnknown);
}

}  // namespace
}  // namespace postflight
