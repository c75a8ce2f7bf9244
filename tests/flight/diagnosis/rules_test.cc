// Each rule of the diagnosis on the smallest job that it applies to, and on one
// that only looks like it.
#include "flight/diagnosis/rules.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flight/diagnosis/diagnosis.h"
#include "flight/job_maker.h"
#include "flight/model/rank_set.h"

namespace postflight {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr State kStarted = State::kStarted;

// "never_joined 2 certain", with "-" where nobody is accused.
std::string verdict_text(const Job& job) {
  const Verdict verdict = diagnose(Matching(job));
  return fmt::format(
      "{} {} {}", kind_name(verdict.kind),
      verdict.culprits.empty() ? "-" : rank_set_text(verdict.culprits),
      confidence_name(verdict.confidence));
}

std::vector<std::string> finding_kinds(const Job& job) {
  std::vector<std::string> kinds;
  for (const Finding& finding : diagnose(Matching(job)).findings)
    kinds.push_back(finding.kind);
  return kinds;
}

MadeEntry done(std::int64_t sequence, std::uint32_t group = 0) {
  return {.sequence = sequence,
          .group = group,
          .created = sequence * kSecond,
          .retired = true,
          .completed = sequence * kSecond + kMillisecond};
}

MadeEntry waiting(std::int64_t sequence, std::uint32_t group = 0,
                  std::int64_t created = 3 * kSecond) {
  return {.sequence = sequence,
          .state = kWaiting,
          .group = group,
          .created = created};
}

MadeEntry message(const std::string& name, State state, std::int64_t number,
                  std::int64_t created) {
  return {.sequence = 0,
          .name = name,
          .state = state,
          .p2p_sequence = number,
          .created = created,
          .retired = state == kDone,
          .completed = state == kDone ? created + kMillisecond : 0};
}

// Never joined.

TEST(Rules, WhoNeverJoinedIsAtFault) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .group("1", {2})
                      .rank(0, {done(1), done(2), waiting(3)})
                      .rank(1, {done(1), done(2), waiting(3)})
                      .rank(2, {done(1), done(2), done(10, 1)})
                      .rank(3, {done(1), done(2), waiting(3)})
                      .job();
  EXPECT_EQ(verdict_text(job), "never_joined 2 certain");
  EXPECT_EQ(diagnose(Matching(job)).summary,
            "rank 2 never joined all_reduce #3 of 0_description; 3 of 4 ranks "
            "wait for it");
}

TEST(Rules, WhatWasJustBegunIsNotCertain) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, {done(1), done(2), waiting(3)})
                      .rank(1, {done(1), done(2), waiting(3)})
                      .rank(2, {done(1), done(2)})
                      .rank(3, {done(1), done(2), waiting(3)})
                      .job();
  EXPECT_EQ(verdict_text(job), "never_joined 2 likely");
}

TEST(Rules, WhoWaitsElsewhereIsAVictim) {
  const Job job = JobMaker()
                      .group("0", {0, 1})
                      .group("1", {1, 2, 3})
                      .group("2", {2})
                      .rank(0, {done(1), waiting(2)})
                      .rank(1, {done(1), waiting(1, 1)})
                      .rank(2, {done(9, 2)})
                      .rank(3, {waiting(1, 1)})
                      .job();
  const Verdict verdict = diagnose(Matching(job));
  EXPECT_EQ(rank_set_text(verdict.culprits), "2");
}

// Stalled device.

TEST(Rules, ADeviceThatNeverStartedHoldsUpItsPeers) {
  MadeEntry before = done(1);
  before.started = before.created + kMillisecond / 2;
  MadeEntry running = waiting(2);
  running.state = kStarted;
  const auto job_after = [&](std::int64_t time) {
    running.started = running.created + time;  // seen when dumped
    return JobMaker()
        .group("0", {0, 1, 2, 3})
        .rank(0, {before, running})
        .rank(1, {before, waiting(2)})
        .rank(2, {before, running})
        .rank(3, {before, running})
        .job();
  };
  EXPECT_EQ(verdict_text(job_after(10 * kSecond)), "device_stalled 1 likely");
  // One of them always starts last.
  EXPECT_EQ(verdict_text(job_after(kMillisecond)), "inconclusive - possible");
}

TEST(Rules, ADeviceThatDidNotFinishWhatItsPeersDid) {
  MadeEntry later = done(5, 1);
  later.completed = 6 * kSecond;
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .group("1", {1})
                      .rank(0, {done(1), done(2)})
                      .rank(1, {done(1), waiting(2, 0, 2 * kSecond), later})
                      .rank(2, {done(1), done(2)})
                      .rank(3, {done(1), done(2)})
                      .job();
  EXPECT_EQ(verdict_text(job), "device_stalled 1 likely");
}

// A dump of active work only does not list what is done.
TEST(Rules, ADeviceLeftBehindByDumpsOfActiveWork) {
  const auto job_where = [&](bool given_up) {
    MadeEntry ninth = waiting(9);
    ninth.retired = given_up;
    return JobMaker()
        .group("0", {0, 1, 2})
        .group("1", {0, 1, 2})
        .rank(0, {ninth, waiting(4, 1)}, 40)
        .rank(1, {waiting(8), waiting(9)}, 40)
        .rank(2, {ninth, waiting(4, 1)}, 40)
        .job();
  };
  EXPECT_EQ(verdict_text(job_where(true)), "device_stalled 1 likely");
  // Its dump may just be the oldest.
  EXPECT_EQ(verdict_text(job_where(false)), "inconclusive - possible");
}

// All joined, none done.

// Operations that follow each other within milliseconds, and one that waits.
std::vector<MadeEntry> quick_steps(std::int64_t count) {
  std::vector<MadeEntry> entries;
  for (std::int64_t i = 1; i <= count; ++i) {
    entries.push_back(done(i));
    entries.back().created = kSecond + i * kMillisecond;
    entries.back().completed = entries.back().created + kMillisecond;
  }
  entries.push_back(
      waiting(count + 1, 0, kSecond + (count + 1) * kMillisecond));
  return entries;
}

TEST(Rules, WhereAllHaveJoinedNobodyIsAccused) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .rank(0, quick_steps(6))
                      .rank(1, quick_steps(6))
                      .rank(2, quick_steps(6))
                      .job();
  EXPECT_EQ(verdict_text(job), "all_joined_stuck - likely");
  EXPECT_THAT(finding_kinds(job), Contains("no_start_times"));
}

TEST(Rules, WhereAllHaveJoinedASlowOperationTheDumpsDoNotTell) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .rank(0, {done(1), waiting(2)})
                      .rank(1, {done(1), waiting(2)})
                      .rank(2, {done(1), waiting(2)})
                      .job();
  EXPECT_EQ(verdict_text(job), "inconclusive - possible");
}

// In progress.

// Completed, but not yet retired by the watchdog.
MadeEntry just_done(std::int64_t sequence, std::int64_t created) {
  MadeEntry entry = done(sequence);
  entry.created = created;
  entry.completed = created + kMillisecond;
  entry.retired = false;
  return entry;
}

TEST(Rules, RanksThatJustFinishedSomethingMove) {
  std::vector<MadeEntry> alive = quick_steps(4);
  alive.insert(alive.end() - 1, just_done(5, kSecond + 5 * kMillisecond));
  alive.back().sequence = 6;
  const std::vector<MadeEntry> slower(alive.begin(), alive.end() - 1);
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .rank(0, alive)
                      .rank(1, alive)
                      .rank(2, slower)
                      .job();
  EXPECT_EQ(verdict_text(job), "in_progress - likely");
}

TEST(Rules, AStuckWatchdogIsNoSignOfLife) {
  // It saw the end of an operation when the dump asked, a minute later.
  std::vector<MadeEntry> stuck = quick_steps(4);
  stuck.insert(stuck.end() - 1, just_done(5, kSecond + 5 * kMillisecond));
  stuck[4].completed += 60 * kSecond;
  stuck.back().sequence = 6;
  const std::vector<MadeEntry> missing(stuck.begin(), stuck.end() - 1);
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .rank(0, stuck)
                      .rank(1, stuck)
                      .rank(2, missing)
                      .job();
  EXPECT_EQ(verdict_text(job), "never_joined 2 certain");
}

TEST(Rules, MostDumpsAreStaleOnlyWhereTheJobMoved) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, {done(1), waiting(2)})
                      .rank(1, {done(1), done(2), waiting(3)})
                      .rank(2, {done(1), done(2), done(3), done(4)})
                      .rank(3, {done(1), done(2), done(3), done(4), waiting(5)})
                      .job();
  EXPECT_EQ(verdict_text(job), "in_progress - certain");
  const Verdict verdict = diagnose(Matching(job));
  EXPECT_TRUE(verdict.ranks[0].stale);
  EXPECT_TRUE(verdict.ranks[1].stale);
  EXPECT_FALSE(verdict.ranks[2].stale);
}

TEST(Rules, AnOperationThatWasNeverSeenToEndIsNoSignOfMotion) {
  const std::vector<MadeEntry> hole = {done(1), waiting(2, 0, 2 * kSecond),
                                       done(3), done(4)};
  std::vector<MadeEntry> waits = hole;
  waits.push_back(waiting(5, 0, 5 * kSecond));
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, waits)
                      .rank(1, waits)
                      .rank(2, waits)
                      .rank(3, hole)
                      .job();
  EXPECT_EQ(verdict_text(job), "never_joined 3 likely");
}

TEST(Rules, WhoseEntriesWereOverwrittenIsNotAccused) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .group("1", {2})
                      .rank(0, {done(1), waiting(2)})
                      .rank(1, {done(1), waiting(2)})
                      .rank(2, {done(9, 1)}, 40)
                      .job();
  EXPECT_EQ(verdict_text(job), "inconclusive - possible");
}

TEST(Rules, AReceiveFromAnyRankIsPending) {
  const Job job =
      JobMaker()
          .group("0", {0, 1})
          .rank(0, {message("nccl:recvAnysource", kWaiting, 1, kSecond)})
          .rank(1, {done(1, 0)})
          .job();
  EXPECT_NE(verdict_text(job), "healthy - certain");
}

TEST(Rules, AnEarlyDumpDoesNotHideAHang) {
  const Job job =
      JobMaker()
          .group("0", {0, 1, 2, 3, 4})
          .rank(0, {done(1)})
          .rank(1, {done(1), done(2), done(3), waiting(4, 0, 9 * kSecond)})
          .rank(2, {done(1), done(2), done(3), waiting(4, 0, 9 * kSecond)})
          .rank(3, {done(1), done(2), done(3), waiting(4, 0, 9 * kSecond)})
          .rank(4, {done(1), done(2), done(3)})
          .job();
  EXPECT_EQ(verdict_text(job), "never_joined 4 likely");
}

// Argument mismatch.

Job mismatch(const MadeEntry& odd) {
  MadeEntry even = waiting(2);
  return JobMaker()
      .group("0", {0, 1, 2, 3})
      .rank(0, {done(1), even})
      .rank(1, {done(1), even})
      .rank(2, {done(1), even})
      .rank(3, {done(1), odd})
      .job();
}

TEST(Rules, TheMinorityHasTheWrongArguments) {
  MadeEntry odd = waiting(2);
  odd.name = "nccl:broadcast";
  EXPECT_EQ(verdict_text(mismatch(odd)), "type_mismatch 3 certain");
  odd = waiting(2);
  odd.size = 5;
  EXPECT_EQ(verdict_text(mismatch(odd)), "size_mismatch 3 certain");
  odd = waiting(2);
  odd.dtype = "Half";
  EXPECT_EQ(verdict_text(mismatch(odd)), "dtype_mismatch 3 certain");
}

TEST(Rules, OfTwoEitherMayBeWrong) {
  MadeEntry odd = waiting(2);
  odd.size = 5;
  const Job job = JobMaker()
                      .group("0", {0, 1})
                      .rank(0, {done(1), waiting(2)})
                      .rank(1, {done(1), odd})
                      .job();
  EXPECT_EQ(verdict_text(job), "size_mismatch 0-1 possible");
  EXPECT_THAT(finding_kinds(job), Contains("undecided"));
}

// Gathers of four ranks; in the last one, `other` is a root, too.
Job with_two_roots(const std::vector<int>& roots, int other) {
  JobMaker maker;
  maker.group("0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<MadeEntry> entries;
    for (std::size_t i = 0; i < roots.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i + 1);
      const bool last = i + 1 == roots.size();
      MadeEntry entry =
          last ? waiting(number, 0, number * kSecond) : done(number);
      entry.name = "nccl:gather";
      if (rank == roots[i] || (last && rank == other))
        entry.output_size = 4 * entry.size;
      entries.push_back(entry);
    }
    maker.rank(rank, entries);
  }
  return maker.job();
}

TEST(Rules, OfTwoRootsTheOneOutOfTurnIsWrong) {
  EXPECT_EQ(verdict_text(with_two_roots({1, 1, 1, 1}, 0)),
            "size_mismatch 0 likely");
  EXPECT_EQ(verdict_text(with_two_roots({0, 1, 2, 3}, 0)),
            "size_mismatch 0 likely");
  EXPECT_EQ(verdict_text(with_two_roots({3, 2, 1, 0}, 2)),
            "size_mismatch 2 likely");
}

TEST(Rules, OfTwoRootsWithoutATurnEitherMayBeWrong) {
  EXPECT_EQ(verdict_text(with_two_roots({0, 1, 1, 3}, 0)),
            "size_mismatch 0,3 possible");
  EXPECT_EQ(verdict_text(with_two_roots({0, 3}, 0)),
            "size_mismatch 0,3 possible");
}

// Rank 2 leaves out #2, so that its #2 is what the others call #3.
TEST(Rules, ASkippedOperationIsToldFromAWrongOne) {
  const std::vector<std::int64_t> sizes = {4, 8, 16, 32, 64, 128};
  JobMaker maker;
  maker.group("0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<MadeEntry> entries;
    for (const std::int64_t size : sizes) {
      if (rank == 2 && size == 8)
        continue;
      const auto number = static_cast<std::int64_t>(entries.size()) + 1;
      MadeEntry entry = number == 1 ? done(1) : waiting(number);
      entry.size = size;
      entries.push_back(entry);
    }
    maker.rank(rank, entries);
  }
  const Job job = maker.job();
  EXPECT_EQ(rank_set_text(diagnose(Matching(job)).culprits), "2");
  EXPECT_THAT(finding_kinds(job), Contains("skipped_operation"));
}

// Wrong group.

TEST(Rules, ACallOnTheWrongGroupIsOrderMismatch) {
  MadeEntry meant = waiting(2);
  meant.size = 77;
  MadeEntry strayed = waiting(1, 1);
  strayed.size = 77;
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .group("1", {0, 1, 2, 3})
                      .rank(0, {done(1), meant})
                      .rank(1, {done(1), meant})
                      .rank(2, {done(1), strayed})
                      .rank(3, {done(1), meant})
                      .job();
  EXPECT_EQ(verdict_text(job), "order_mismatch 2 certain");
}

// Cycle of waiting ranks.

TEST(Rules, GroupsUsedInDifferentOrdersMakeACircle) {
  MadeEntry first = waiting(1);
  MadeEntry second = waiting(1, 1);
  second.size = 8;
  const Job job = JobMaker()
                      .group("0", {0, 1})
                      .group("1", {0, 1})
                      .rank(0, {first})
                      .rank(1, {second})
                      .job();
  EXPECT_EQ(verdict_text(job), "order_mismatch 0-1 possible");
}

// Point-to-point.

TEST(Rules, AReceiveWithoutItsSendIsTheSendersFault) {
  const Job job =
      JobMaker()
          .group("0", {0, 1, 2})
          .rank(0, {message("nccl:send 0->1", kDone, 1, kSecond), done(9)})
          .rank(1, {message("nccl:recv 1<-0", kDone, 1, kSecond),
                    message("nccl:recv 1<-0", kWaiting, 2, 2 * kSecond)})
          .rank(2, {done(9)})
          .job();
  const Verdict verdict = diagnose(Matching(job));
  EXPECT_EQ(rank_set_text(verdict.culprits), "0");
  EXPECT_THAT(verdict.summary,
              testing::StartsWith("rank 0 never sent what rank 1 waits for"));
}

// Ranks 0-1, 2-3 and 4-5 are the stages of two pipelines. Rank 5 went on to the
// end of its step without sending back to rank 3, which holds everybody up.
TEST(Rules, OfManyTransfersWithoutTheirOtherSideTheOneLeftOutIsNamed) {
  const auto in = [](std::uint32_t group, const std::string& name, State state,
                     std::int64_t number) {
    MadeEntry entry = message(name, state, number, number * kSecond);
    entry.group = group;
    return entry;
  };
  const auto first = [&](std::uint32_t group) {
    return in(group, "nccl:recv 0<-1", kWaiting, 5);
  };
  const Job job =
      JobMaker()
          .group("0", {0, 1, 2, 3, 4, 5})
          .group("1", {0, 2, 4})
          .group("2", {1, 3, 5})
          .group("3", {2, 3})
          .rank(0, {done(1), first(1)})
          .rank(1, {done(1), first(2)})
          .rank(2, {done(1), in(1, "nccl:recv 1<-2", kDone, 4),
                    in(1, "nccl:recv 1<-2", kDone, 5), waiting(1, 3)})
          .rank(3, {done(1), in(2, "nccl:recv 1<-2", kDone, 4),
                    in(2, "nccl:recv 1<-2", kWaiting, 5)})
          .rank(4, {done(1), in(1, "nccl:send 2->1", kDone, 4),
                    in(1, "nccl:send 2->1", kDone, 5), waiting(2)})
          .rank(5, {done(1), in(2, "nccl:send 2->1", kDone, 4), waiting(2)})
          .job();
  EXPECT_EQ(verdict_text(job), "p2p_unmatched 5 likely");
}

// Rank 1's batch lacks the receive of what rank 0 sends. The rings have
// wrapped, so nothing can be counted.
TEST(Rules, ABatchWithATransferTooFewIsNoStuckNetwork) {
  const auto batch = [](State state, std::int64_t number,
                        const std::vector<std::string>& names) {
    std::vector<MadeEntry> entries;
    for (const std::string& name : names)
      entries.push_back(message(name, kWaiting, number, number * kSecond));
    entries.back().state = state;
    entries.back().retired = state == kDone;
    return entries;
  };
  std::vector<MadeEntry> left =
      batch(kDone, 8, {"nccl:send 0->1", "nccl:recv 0<-1", "nccl:coalesced"});
  std::vector<MadeEntry> right =
      batch(kDone, 8, {"nccl:send 1->0", "nccl:recv 1<-0", "nccl:coalesced"});
  for (const MadeEntry& entry : batch(
           kWaiting, 9, {"nccl:send 0->1", "nccl:recv 0<-1", "nccl:coalesced"}))
    left.push_back(entry);
  for (const MadeEntry& entry :
       batch(kWaiting, 9, {"nccl:send 1->0", "nccl:coalesced"}))
    right.push_back(entry);
  const auto judge = [&] {
    return verdict_text(JobMaker()
                            .group("0", {0, 1})
                            .rank(0, left, 100)
                            .rank(1, right, 90)
                            .job());
  };
  EXPECT_EQ(judge(), "inconclusive - possible");  // or dumped a moment apart
  right.back().retired = true;                    // the watchdog gave up
  EXPECT_EQ(judge(), "p2p_unmatched 0-1 possible");
}

// Batches of four ranks in a ring, of which the dumps hold the last ones. In an
// earlier one, rank 3 left out what it should have sent to rank 0, which now
// waits for one transfer more; all others have done their part of the step.
TEST(Rules, ABatchWaitsForTheRankThatLeftATransferOut) {
  constexpr std::int64_t kFirst = 100;
  constexpr std::int64_t kLast = 110;
  JobMaker maker;
  maker.group("0", {0, 1, 2, 3}).group("1", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<MadeEntry> entries;
    const State last = rank == 0 ? kWaiting : kDone;
    for (std::int64_t number = kFirst; number <= kLast; ++number) {
      const State state = number == kLast ? last : kDone;
      const std::int64_t created = number * kSecond;
      for (const std::string& name :
           {fmt::format("nccl:send {}->{}", rank, (rank + 1) % 4),
            fmt::format("nccl:recv {}<-{}", rank, (rank + 3) % 4)})
        entries.push_back(message(name, kWaiting, number, created));
      entries.push_back(message("nccl:coalesced", state, number, created));
    }
    entries.back().retired = true;  // on rank 0 the watchdog gave up
    entries.push_back(waiting(1, 1, (kLast + 1) * kSecond));
    maker.rank(rank, entries, 3 * (kFirst - 1) - (rank == 3 ? 1 : 0));
  }
  EXPECT_EQ(verdict_text(maker.job()), "p2p_unmatched 3 likely");
}

// Each rank is somewhere else, and all are ahead of rank 0.
TEST(Rules, AGroupInMorePlacesThanAreComparedStillNamesWhoIsBehind) {
  constexpr int kRanks = 1500;
  std::vector<int> members(kRanks);
  std::iota(members.begin(), members.end(), 0);
  JobMaker maker;
  maker.group("0", members).group("1", {0});
  maker.rank(0, {done(1), done(10, 1)});
  for (int rank = 1; rank < kRanks; ++rank)
    maker.rank(rank, {done(1), waiting(rank + 1)});
  const Job job = maker.job();
  const Verdict verdict = diagnose(Matching(job));
  EXPECT_EQ(kind_name(verdict.kind), "never_joined");
  EXPECT_EQ(rank_set_text(verdict.culprits), "0");
}

// No dump.

TEST(Rules, AMissingDumpThatOthersWaitForIsBlamedWithCare) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, {done(1), waiting(2)})
                      .rank(1, {done(1), waiting(2)})
                      .rank(2, {done(1), waiting(2)})
                      .job();
  EXPECT_EQ(verdict_text(job), "no_dump 3 likely");
}

// What ranks 1 and 2 wait for from each other stands behind what rank 0 owes.
TEST(Rules, AMissingDumpExplainsThePipelineBehindIt) {
  const Job job =
      JobMaker()
          .group("0", {0, 1, 2})
          .rank(1, {message("nccl:recv 1<-0", kWaiting, 1, kSecond),
                    message("nccl:send 1->2", kWaiting, 2, kSecond),
                    message("nccl:recv 1<-2", kWaiting, 3, kSecond)})
          .rank(2, {message("nccl:recv 2<-1", kWaiting, 1, kSecond)})
          .job();
  EXPECT_EQ(verdict_text(job), "no_dump 0 likely");
}

TEST(Rules, AMissingDumpThatNobodyWaitsForIsAFinding) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3, 4, 5})
                      .rank(0, {done(1), done(2)})
                      .rank(1, {done(1), done(2)})
                      .rank(2, {done(1), done(2)})
                      .rank(3, {done(1), done(2)})
                      .rank(4, {done(1), done(2)})
                      .job();
  EXPECT_EQ(verdict_text(job), "healthy - certain");
  EXPECT_THAT(finding_kinds(job), Contains("missing_dumps"));
}

TEST(Rules, WithMostDumpsMissingNothingIsConcluded) {
  const Job job =
      JobMaker().group("0", {0, 1, 2, 3}).rank(0, {done(1), waiting(2)}).job();
  EXPECT_EQ(verdict_text(job), "inconclusive - likely");
}

// Time-outs.

TEST(Rules, TheFirstWatchdogToGiveUpIsNamed) {
  MadeEntry patient = waiting(2);
  MadeEntry hasty = waiting(2);
  hasty.timeout_ms = 30'000;
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .rank(0, {done(1), patient})
                      .rank(1, {done(1), hasty})
                      .rank(2, {done(1)})
                      .job();
  EXPECT_THAT(finding_kinds(job), testing::AllOf(Contains("first_timeout"),
                                                 Contains("timeouts_differ")));
  for (const Finding& finding : diagnose(Matching(job)).findings)
    if (finding.kind == "first_timeout") {
      EXPECT_EQ(finding.message,
                "rank 1 reaches its watchdog time-out first, 30 s after it "
                "enqueued all_reduce #2 of 0_description");
    }
}

TEST(Rules, WhatTheWatchdogGaveUpIsNotDone) {
  MadeEntry aborted = waiting(2);
  aborted.retired = true;
  const Job job = JobMaker()
                      .group("0", {0, 1})
                      .rank(0, {done(1), aborted})
                      .rank(1, {done(1)})
                      .job();
  EXPECT_EQ(diagnose(Matching(job)).kind, VerdictKind::kNeverJoined);
  EXPECT_THAT(finding_kinds(job), Contains("aborted"));
}

// Straggler.

Job late_job(int late, std::int64_t delay, std::int64_t skew) {
  JobMaker maker;
  maker.group("0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<MadeEntry> entries;
    for (std::int64_t number = 1; number <= 20; ++number) {
      MadeEntry entry = done(number);
      if (rank == late)
        entry.created += delay + skew;
      entry.completed = number * kSecond + delay + 5 * kMillisecond +
                        (rank == late ? skew : 0);
      entries.push_back(entry);
    }
    maker.rank(rank, entries);
  }
  return maker.job();
}

TEST(Rules, WhoIsAlwaysLastIsAStraggler) {
  EXPECT_EQ(verdict_text(late_job(2, 80 * kMillisecond, 0)),
            "straggler 2 likely");
}

TEST(Rules, AClockThatIsOffIsNoStraggler) {
  EXPECT_EQ(verdict_text(late_job(2, 0, 3 * kSecond)), "healthy - certain");
}

// Hosts that run ahead enqueue a step at once, all of it late if the first was.
TEST(Rules, ALateStepOrTwoMakeNoStraggler) {
  const auto job_with = [](int steps) {
    JobMaker maker;
    maker.group("0", {0, 1, 2, 3});
    for (int rank = 0; rank < 4; ++rank) {
      std::vector<MadeEntry> entries;
      for (std::int64_t number = 1; number <= 24; ++number) {
        const std::int64_t step = (number - 1) * steps / 24;
        const std::int64_t end = (step + 1) * kSecond;
        entries.push_back({.sequence = number,
                           .created = step * kSecond + number * kMillisecond +
                                      (rank == 2 ? 300 * kMillisecond : 0),
                           .retired = true,
                           .completed = end});
      }
      maker.rank(rank, entries);
    }
    return maker.job();
  };
  EXPECT_EQ(verdict_text(job_with(2)), "healthy - certain");
  EXPECT_EQ(verdict_text(job_with(12)), "straggler 2 likely");
}

// A straggler shows though others wait as well, for the job moves.
TEST(Rules, AStragglerIsFoundWhileOperationsArePending) {
  JobMaker maker;
  maker.group("0", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<MadeEntry> entries;
    for (std::int64_t number = 1; number <= 20; ++number) {
      MadeEntry entry = done(number);
      entry.created += rank == 2 ? 80 * kMillisecond : 0;
      entry.completed = number * kSecond + 85 * kMillisecond;
      entries.push_back(entry);
    }
    if (rank != 2)
      entries.push_back(waiting(21, 0, 21 * kSecond));
    maker.rank(rank, entries);
  }
  EXPECT_EQ(verdict_text(maker.job()), "straggler 2 likely");
}

// The ends of one slow link are both late.
TEST(Rules, BothEndsOfALinkAreNoStragglers) {
  const auto job_with = [](bool both) {
    JobMaker maker;
    maker.group("0", {0, 1, 2, 3}).group("1", {4, 5, 6, 7}).group("2", {0, 4});
    for (int rank = 0; rank < 8; ++rank) {
      std::vector<MadeEntry> entries;
      for (std::int64_t number = 1; number <= 20; ++number) {
        MadeEntry entry = done(number, static_cast<std::uint32_t>(rank / 4));
        const bool late = rank == 0 || (rank == 4 && both);
        entry.created += late ? 120 * kMillisecond : 0;
        entry.completed = number * kSecond + 125 * kMillisecond;
        entries.push_back(entry);
      }
      if (rank % 4 == 0) {
        MadeEntry pass =
            message(rank == 0 ? "nccl:send 0->1" : "nccl:recv 1<-0", kDone, 1,
                    20 * kSecond);
        pass.group = 2;
        entries.push_back(pass);
      }
      maker.rank(rank, entries);
    }
    return maker.job();
  };
  EXPECT_EQ(verdict_text(job_with(false)), "straggler 0 likely");
  EXPECT_EQ(verdict_text(job_with(true)), "healthy - certain");
}

// Sizes of transfers.

Job unequal_transfer_job(std::int64_t sent, std::int64_t expected) {
  const auto pass = [](bool send, std::int64_t number, std::int64_t size,
                       State state) {
    MadeEntry entry = message(send ? "nccl:send 0->1" : "nccl:recv 1<-0", state,
                              number, number * kSecond);
    entry.size = size;
    return entry;
  };
  std::vector<MadeEntry> sends;
  std::vector<MadeEntry> receives;
  for (std::int64_t number = 1; number <= 4; ++number) {
    sends.push_back(pass(true, number, 64, kDone));
    receives.push_back(pass(false, number, 64, kDone));
  }
  sends.push_back(pass(true, 5, sent, kWaiting));
  receives.push_back(pass(false, 5, expected, kWaiting));
  return JobMaker().group("0", {0, 1}).rank(0, sends).rank(1, receives).job();
}

TEST(Rules, WhoPassesAnotherSizeToATransferThanBeforeIsAtFault) {
  const Job job = unequal_transfer_job(128, 64);
  EXPECT_EQ(verdict_text(job), "size_mismatch 0 likely");
  EXPECT_EQ(diagnose(Matching(job)).summary,
            "rank 0 and rank 1 differ in a transfer in 0_description: [128] "
            "sent, [64] expected, unlike before by rank 0");
  EXPECT_EQ(verdict_text(unequal_transfer_job(64, 32)),
            "size_mismatch 1 likely");
}

TEST(Rules, WhereBothSidesOfATransferAreNewBothAreNamed) {
  EXPECT_EQ(verdict_text(unequal_transfer_job(128, 32)),
            "size_mismatch 0-1 possible");
  EXPECT_NE(diagnose(Matching(unequal_transfer_job(128, 128))).kind,
            VerdictKind::kSizeMismatch);
}

// Silent rank.

TEST(Rules, ARankThatFellSilentIsAFinding) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, {done(1), waiting(2, 0, 100 * kSecond)})
                      .rank(1, {done(1), waiting(2, 0, 100 * kSecond)})
                      .rank(2, {done(1)})
                      .rank(3, {done(1), waiting(2, 0, 100 * kSecond)})
                      .job();
  EXPECT_THAT(finding_kinds(job), Contains("silent"));
}

// Hygiene.

TEST(Rules, ADumpOfAnotherTimeIsAFinding) {
  const auto at = [](std::int64_t seconds) {
    MadeEntry entry = done(1);
    entry.created += seconds * kSecond;
    entry.completed += seconds * kSecond;
    return entry;
  };
  const auto messages = [&](std::int64_t seconds) {
    const Job job = JobMaker()
                        .group("0", {0, 1, 2, 3})
                        .rank(0, {at(9000)})
                        .rank(1, {at(9000)})
                        .rank(2, {at(seconds)})
                        .rank(3, {at(9000)})
                        .job();
    std::vector<std::string> found;
    for (const Finding& finding : diagnose(Matching(job)).findings)
      if (finding.kind == "another_time")
        found.push_back(finding.message);
    return found;
  };
  EXPECT_THAT(messages(9500), IsEmpty());
  EXPECT_THAT(messages(18'000),
              testing::ElementsAre("the dump of rank 2 starts 2 h 30 min after "
                                   "the others end; is it from another job?"));
  EXPECT_THAT(messages(5400),
              testing::ElementsAre("the dump of rank 2 ends 1 h before the "
                                   "others start; is it from another job?"));
}

TEST(Rules, VersionsThatDifferAreAFinding) {
  JobMaker maker;
  maker.group("0", {0, 1})
      .rank(0, {done(1)})
      .version("2.10")
      .rank(1, {done(1)})
      .version("2.9");
  const Job job = maker.job();
  EXPECT_THAT(finding_kinds(job), Contains("versions_differ"));
  EXPECT_EQ(verdict_text(job), "healthy - certain");
}

TEST(Rules, ARingThatHoldsSecondsIsAFinding) {
  const auto ring = [](std::int64_t first) {
    return JobMaker()
        .group("0", {0, 1})
        .rank(0, {done(1), waiting(2)}, first)
        .rank(1, {done(1)}, first)
        .job();
  };
  EXPECT_THAT(finding_kinds(ring(4000)), Contains("ring_short"));
  EXPECT_THAT(finding_kinds(ring(0)), Not(Contains("ring_short")));
}

// Whatever a damaged or hostile dump says, no arithmetic runs over.
TEST(Rules, TakeAnyNumbers) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const std::vector<std::int64_t> odd = {kLeast, -1, 0, 1, kMost - 1, kMost};
  for (const std::int64_t number : odd)
    for (const std::int64_t time : odd)
      for (const State state : {kDone, kStarted, kWaiting}) {
        MadeEntry entry = {.sequence = number,
                           .state = state,
                           .size = number,
                           .created = time,
                           .retired = state == kDone,
                           .started = -time / 2,
                           .completed = number,
                           .timeout_ms = time};
        MadeEntry send = entry;
        send.name = "nccl:send 0->1";
        send.p2p_sequence = time;
        std::vector<MadeEntry> many(12, done(1));
        many.push_back(entry);
        many.push_back(send);
        const Job job = JobMaker()
                            .group("0", {0, 1, 2, 3})
                            .rank(0, {entry, send})
                            .rank(1, {done(1), waiting(2)}, kMost - 1)
                            .rank(2, many)
                            .rank(3, {send, entry, waiting(kMost)})
                            .job();
        EXPECT_EQ(diagnose(Matching(job)).ranks.size(), 4u);
      }
}

TEST(Rules, DumpsWithoutOperationsProveNothing) {
  Job job = JobMaker().group("0", {0, 1}).rank(0, {}).rank(1, {}).job();
  EXPECT_EQ(verdict_text(job), "inconclusive - possible");
  // The recorder was on, and only active operations were asked for.
  job.ranks[1].statuses.push_back({.last_enqueued = 7, .last_completed = 7});
  EXPECT_EQ(verdict_text(job), "healthy - certain");
}

TEST(Rules, AHealthyJobSaysOnlyWhatItDoesNotProve) {
  const Job job = JobMaker()
                      .group("0", {0, 1})
                      .rank(0, {done(1), done(2)})
                      .rank(1, {done(1), done(2)})
                      .job();
  EXPECT_EQ(verdict_text(job), "healthy - certain");
  EXPECT_THAT(finding_kinds(job), ElementsAre("nothing_pending"));
}

}  // namespace
}  // namespace postflight
