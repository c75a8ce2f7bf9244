#include "api/trace.h"

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_files.h"

namespace {
std::atomic<int> threads_started = 0;
}

// Takes the place of the C library's, to count.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* how,
                              void* (*run)(void*), void* argument) {
  ++threads_started;
  using Create =
      int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create =
      reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, how, run, argument);
}

namespace postflight {
namespace {

using testing::ElementsAre;

constexpr Context kOneThread = {.threads = 1};

JobEvidence dumps(const std::string& name) {
  return {.dumps = {std::string(TEST_DATA) + "/flight/" + name}};
}

Investigation found(const JobEvidence& evidence,
                    const Context& context = kOneThread) {
  return must(investigate(evidence, context));
}

TEST(Investigate, StartsNoThreadIfToldToUseOne) {
  threads_started = 0;
  for (const char* const job :
       {"nccl_mesh_hang", "nccl_size_mismatch", "nccl_straggler"})
    found(dumps(job), {.threads = 1});
  EXPECT_EQ(threads_started, 0);
}

TEST(Investigate, StartsThreadsIfToldToUseSeveral) {
  threads_started = 0;
  found(dumps("nccl_mesh_hang"), {.threads = 2});
  EXPECT_GT(threads_started, 0);
}

TEST(Investigate, KnowsWhereTheCulpritRan) {
  JobEvidence evidence = dumps("nccl_missing_rank");
  evidence.hosts = "gpu[1-2] x2";
  const Investigation investigation = found(evidence);
  const Verdict& verdict = investigation.verdict;
  ASSERT_EQ(verdict.kind, VerdictKind::kNeverJoined);
  EXPECT_THAT(culprit_hosts(investigation.job(), verdict),
              ElementsAre(investigation.job().host_of(verdict.culprits[0])));
}

TEST(Investigate, ReadsHostsFromAFile) {
  const TemporaryFolder folder = scratch_folder();
  const std::string file = folder.path() / "hostfile";
  write_file(file, "a slots=2\nb slots=2\n");
  JobEvidence evidence = dumps("nccl_missing_rank");
  evidence.hosts = file;
  EXPECT_EQ(found(evidence).job().host_of(Rank{3}), "b");
}

// Issue 17.
TEST(Investigate, RefusesAHostFileThatIsNotThere) {
  JobEvidence evidence = dumps("nccl_missing_rank");
  for (const char* const name : {"nodes.txt", "/tmp/none/a,b", "node1"}) {
    evidence.hosts = name;
    EXPECT_THAT(message_of(investigate(evidence, kOneThread)),
                testing::StartsWith(std::string(name) + ": no such file"));
  }
}

TEST(Investigate, TakesNodeListsForWhatTheyAre) {
  JobEvidence evidence = dumps("nccl_missing_rank");
  for (const char* const list :
       {"a,b", "a x4", "a:4", "node[1-2]", "SLURM_JOB_NODELIST=a"}) {
    evidence.hosts = list;
    EXPECT_THAT(found(evidence).job().host_of(Rank{0}), testing::Not(""));
  }
}

TEST(Investigate, SaysWhichRanksTheHostListLacks) {
  JobEvidence evidence = dumps("nccl_missing_rank");
  evidence.hosts = "a x3";
  EXPECT_THAT(found(evidence).verdict.findings,
              testing::Contains(Finding{
                  .kind = "hosts_incomplete",
                  .severity = Severity::kWarning,
                  .message = "the host list has 3 of the job's 4 ranks; it "
                             "does not say where rank 3 ran",
                  .where = "a x3"}));
  evidence.hosts = "a x8";
  EXPECT_THAT(
      found(evidence).verdict.findings,
      testing::Contains(testing::Field(&Finding::kind, "hosts_excess")));
}

TEST(Investigate, PutsWhatLogsSayFirst) {
  const TemporaryFolder folder = scratch_folder();
  const std::string file = folder.path() / "train.log";
  write_file(file,
             "[rank2]: Traceback (most recent call last):\n"
             "[rank2]:   File \"train.py\", line 7, in <module>\n"
             "[rank2]: KeyError: 'x'\n");
  JobEvidence evidence = dumps("nccl_missing_rank");
  evidence.logs = {file};
  const Verdict verdict = found(evidence).verdict;
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0],
            (Finding{.kind = "log_traceback",
                     .severity = Severity::kError,
                     .message = "rank 2: KeyError: 'x' at train.py:7; the "
                                "first sign of trouble in the logs",
                     .where = file + ":1"}));
}

TEST(Investigate, ExpandsGlobsOfLogs) {
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "a.log", "[rank0]: CUDA error: unknown\n");
  write_file(folder.path() / "b.log", "[rank1]: CUDA error: unknown\n");
  JobEvidence evidence = dumps("nccl_missing_rank");
  evidence.logs = {folder.path() / "*.log"};
  const Verdict verdict = found(evidence).verdict;
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(
      verdict.findings[0].message,
      "ranks 0-1: CUDA error: unknown; the first sign of trouble in the logs");
}

TEST(Investigate, RefusesALogThatIsNotThere) {
  JobEvidence evidence = dumps("nccl_missing_rank");
  evidence.logs = {"/no/such.log"};
  EXPECT_EQ(message_of(investigate(evidence, kOneThread)),
            "/no/such.log: No such file or directory");
}

Verdict verdict_of(VerdictKind kind, bool pending = false) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.pending = pending;
  return verdict;
}

TEST(IsProblem, DependsOnTheVerdict) {
  EXPECT_FALSE(is_problem(verdict_of(VerdictKind::kHealthy)));
  EXPECT_TRUE(is_problem(verdict_of(VerdictKind::kNeverJoined)));
  EXPECT_FALSE(is_problem(verdict_of(VerdictKind::kInconclusive)));
  EXPECT_TRUE(is_problem(verdict_of(VerdictKind::kInconclusive, true)));
}

TEST(IsProblem, CountsWarningsIfStrict) {
  Verdict verdict = verdict_of(VerdictKind::kHealthy);
  verdict.findings.push_back({"late", Severity::kWarning, "it is late", ""});
  EXPECT_FALSE(is_problem(verdict));
  EXPECT_TRUE(is_problem(verdict, true));
}

TEST(DefaultDumps, NamesThePlacesWithoutAny) {
  const auto environment = [](std::string_view name) {
    return name == "TORCH_FR_DUMP_TEMP_FILE" || name == "HOME"
               ? std::optional<std::string>("/no/such")
               : std::nullopt;
  };
  EXPECT_THAT(message_of(default_dumps(environment)),
              testing::StartsWith("no dumps in the usual places (/no/such*, "
                                  "/no/such/.cache/torch/"));
}

TEST(FindGroups, TakesNamesAndDescriptions) {
  const Investigation investigation = found(dumps("nccl_missing_rank"));
  const Job& job = investigation.job();
  const Group& group = job.groups[0];
  EXPECT_THAT(must(find_groups(job, job.text(group.name))),
              ElementsAre(GroupId{0}));
  EXPECT_THAT(must(find_groups(job, job.text(group.description))),
              ElementsAre(GroupId{0}));
}

// Issue 17.
TEST(FindGroups, FindsAllOfOneName) {
  const Investigation investigation = found(dumps("nccl_tp_fsdp"));
  const Job& job = investigation.job();
  const std::vector<GroupId> groups = must(find_groups(job, "mesh_tp"));
  ASSERT_EQ(groups.size(), 2);
  EXPECT_THAT(job.group(groups[0]).members, ElementsAre(Rank{0}, Rank{1}));
  EXPECT_THAT(job.group(groups[1]).members, ElementsAre(Rank{2}, Rank{3}));
}

TEST(FindGroups, ListsTheGroups) {
  const Investigation investigation = found(dumps("nccl_missing_rank"));
  const Job& job = investigation.job();
  EXPECT_EQ(message_of(find_groups(job, "dp")),
            "there is no group dp in this job, only default_pg");
}

TEST(FindRank, ListsTheRanks) {
  const Investigation investigation = found(dumps("nccl_missing_rank"));
  const Job& job = investigation.job();
  EXPECT_EQ(*find_rank(job, 3), Rank{3});
  EXPECT_EQ(message_of(find_rank(job, 4)),
            "there is no rank 4 in this job, only 0-3");
}

TEST(ParseSelection, RefusesAStateThatThereIsNot) {
  EXPECT_EQ(message_of(parse_selection({.states = {"started", "done"}})),
            "'done' is not a state: give scheduled, started, completed or "
            "unknown");
}

}  // namespace
}  // namespace postflight
