#include "flight/diagnosis/proof.h"

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

using testing::ElementsAre;
using testing::IsEmpty;

MadeEntry waits(std::int64_t sequence, std::uint32_t group = 0,
                std::int64_t size = 4) {
  return {
      .sequence = sequence, .state = kWaiting, .size = size, .group = group};
}

MadeEntry ended(std::int64_t sequence) {
  return {.sequence = sequence, .retired = true};
}

std::string proof_text(const Proof& proof) {
  std::string text = fmt::format("{} {}", proof.culprit.value, proof.change);
  if (!proof.alone)
    text += ", with others";
  if (!proof.released.empty())
    text += "; releases " + rank_set_text(proof.released);
  if (proof.next)
    text += fmt::format(" to #{}", *proof.next);
  if (!proof.waiting.empty())
    text += "; still waiting " + rank_set_text(proof.waiting);
  return text + (proof.supported ? "" : "; unsupported");
}

std::vector<std::string> proofs(const Job& job, VerdictKind kind,
                                const std::vector<int>& culprits,
                                std::int64_t sequence = 0) {
  const Matching matching(job);
  const Case facts(matching, {});
  Verdict verdict;
  verdict.kind = kind;
  for (const int culprit : culprits)
    verdict.culprits.push_back({culprit});
  if (sequence != 0) {
    verdict.group = GroupId{0};
    verdict.sequence = sequence;
    verdict.operation = "all_reduce";
  }
  std::vector<std::string> texts;
  for (const Proof& proof : prove(facts, verdict))
    texts.push_back(proof_text(proof));
  return texts;
}

Job one_missing() {
  return JobMaker()
      .group("0", {0, 1, 2, 3})
      .rank(0, {{1}, waits(2), waits(3)})
      .rank(1, {{1}, waits(2), waits(3)})
      .rank(2, {{1}})
      .rank(3, {{1}, waits(2)})
      .job();
}

TEST(Replay, HadItJoinedEverybodyWouldGoOn) {
  EXPECT_THAT(proofs(one_missing(), VerdictKind::kNeverJoined, {2}),
              ElementsAre("2 joined all_reduce #2 of 0_description; releases "
                          "0-1,3 to #3"));
}

TEST(Replay, ARankThatOnlyWaitsIsNotAtFault) {
  EXPECT_THAT(proofs(one_missing(), VerdictKind::kNeverJoined, {3}),
              ElementsAre("3 joined all_reduce #3 of 0_description; still "
                          "waiting 0-1,3; unsupported"));
}

TEST(Replay, AnAccompliceIsNeeded) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, {{1}, waits(2)})
                      .rank(1, {{1}, waits(2)})
                      .rank(2, {{1}})
                      .rank(3, {{1}})
                      .job();
  EXPECT_THAT(proofs(job, VerdictKind::kNeverJoined, {2}),
              ElementsAre("2 joined all_reduce #2 of 0_description; still "
                          "waiting 0-1; unsupported"));
  EXPECT_THAT(proofs(job, VerdictKind::kNeverJoined, {2, 3}),
              ElementsAre("2 joined all_reduce #2 of 0_description, with "
                          "others; releases 0-1",
                          "3 joined all_reduce #2 of 0_description, with "
                          "others; releases 0-1"));
  EXPECT_THAT(proofs(job, VerdictKind::kNeverJoined, {1, 2, 3})[0],
              testing::EndsWith("unsupported"));
}

// Ranks 0 and 1 wait for rank 2 in group 0; rank 3 waits for rank 1 in group 1.
TEST(Replay, FollowsAChainOfWaits) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .group("1", {1, 3})
                      .rank(0, {{1}, waits(2)})
                      .rank(1, {{1}, waits(2)})
                      .rank(2, {{1}})
                      .rank(3, {waits(1, 1)})
                      .job();
  EXPECT_THAT(
      proofs(job, VerdictKind::kNeverJoined, {2}),
      ElementsAre("2 joined all_reduce #2 of 0_description; releases 0-1,3"));
  EXPECT_THAT(proofs(job, VerdictKind::kNeverJoined, {1}),
              ElementsAre("1 joined all_reduce #1 of 1_description; still "
                          "waiting 0-1,3; unsupported"));
}

TEST(Replay, ARankWithoutADumpIsTakenToDoItsPartUnlessItIsAccused) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, {{1}, waits(2)})
                      .rank(1, {{1}, waits(2)})
                      .rank(2, {{1}})
                      .job();
  EXPECT_THAT(
      proofs(job, VerdictKind::kNeverJoined, {2}),
      ElementsAre("2 joined all_reduce #2 of 0_description; releases 0-1"));
  EXPECT_THAT(proofs(job, VerdictKind::kNoDump, {3}),
              ElementsAre("3 joined all_reduce #2 of 0_description; still "
                          "waiting 0-1; unsupported"));
}

TEST(Replay, OnlyTheStalledDeviceExplainsWhatPeersCompleted) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .rank(0, {ended(1), ended(2), waits(3)})
                      .rank(1, {ended(1), ended(2), waits(3)})
                      .rank(2, {ended(1), waits(2), waits(3)})
                      .job();
  EXPECT_THAT(proofs(job, VerdictKind::kDeviceStalled, {2}, 2),
              ElementsAre("2 completed all_reduce #2 of 0_description; "
                          "releases 0-1 to #3"));
  EXPECT_THAT(proofs(job, VerdictKind::kDeviceStalled, {1}, 2)[0],
              testing::EndsWith("unsupported"));
}

TEST(Replay, CallsOfOthersWouldMeet) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .rank(0, {{1}, waits(2)})
                      .rank(1, {{1}, waits(2)})
                      .rank(2, {{1}, waits(2, 0, 8)})
                      .job();
  EXPECT_THAT(proofs(job, VerdictKind::kSizeMismatch, {2}, 2),
              ElementsAre("2 called all_reduce #2 of 0_description as the "
                          "others did; releases 0-1"));
  EXPECT_THAT(proofs(job, VerdictKind::kSizeMismatch, {1}, 2)[0],
              testing::EndsWith("unsupported"));
}

// Any rank of a cycle breaks it; one outside does not.
TEST(Replay, OrderOfGroups) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .group("1", {0, 1, 2})
                      .group("2", {2, 3})
                      .rank(0, {waits(1), waits(1, 1)})
                      .rank(1, {waits(1, 1), waits(1)})
                      .rank(2, {waits(1), waits(1, 1)})
                      .rank(3, {waits(1, 2)})
                      .job();
  EXPECT_THAT(proofs(job, VerdictKind::kOrderMismatch, {1}, 1),
              ElementsAre("1 called all_reduce #1 of 0_description as the "
                          "others did; releases 0,2-3"));
  EXPECT_THAT(proofs(job, VerdictKind::kOrderMismatch, {3}, 1)[0],
              testing::EndsWith("unsupported"));
}

TEST(Replay, TheMissingSideOfATransferAppears) {
  const Job job = JobMaker()
                      .group("0", {0, 1, 2})
                      .rank(0, {{0, "nccl:send 0->1", kWaiting, 4, 1}})
                      .rank(1, {{0, "nccl:recv 1<-2", kWaiting, 4, 1}})
                      .rank(2, {{0, "nccl:recv 2<-1", kWaiting, 4, 1}})
                      .job();
  const std::vector<std::string> found =
      proofs(job, VerdictKind::kPointToPoint, {1});
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0], testing::HasSubstr("releases 0,2"));
  EXPECT_THAT(proofs(job, VerdictKind::kPointToPoint, {0})[0],
              testing::EndsWith("unsupported"));
}

TEST(Replay, HasNothingToSayOfWhoIsNotAccused) {
  EXPECT_THAT(proofs(one_missing(), VerdictKind::kAllJoinedStuck, {}),
              IsEmpty());
  EXPECT_THAT(proofs(one_missing(), VerdictKind::kStraggler, {2}), IsEmpty());
}

TEST(Replay, DiagnoseAddsIt) {
  // Its watchdog gave up, so that it is not just in progress.
  MadeEntry given_up = waits(2);
  given_up.retired = true;
  const Job job = JobMaker()
                      .group("0", {0, 1, 2, 3})
                      .rank(0, {{1}, given_up, waits(3)})
                      .rank(1, {{1}, waits(2), waits(3)})
                      .rank(2, {{1}})
                      .rank(3, {{1}, waits(2)})
                      .job();
  const Verdict verdict = diagnose(Matching(job));
  ASSERT_EQ(verdict.kind, VerdictKind::kNeverJoined);
  ASSERT_EQ(verdict.why.size(), 1);
  EXPECT_TRUE(verdict.why[0].supported);
  EXPECT_TRUE(is_proven(verdict));
}

}  // namespace
}  // namespace postflight
