#include "flight/classic/analysis.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "base/test_files.h"
#include "flight/classic/alignment.h"
#include "flight/model/job_loader.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

std::string classic_corpus(const std::string& name) {
  return std::string(TEST_DATA) + "/flight/" + name;
}

Job classic_job(const std::string& folder, const std::string& prefix = "nccl") {
  const std::vector<std::string> paths = {folder};
  LoadOptions options;
  options.names.prefix = prefix + "_trace_rank_";
  Result<Job> job = load_job(paths, options, {.threads = 1});
  EXPECT_TRUE(job) << (job ? "" : job.error().message());
  return job ? *std::move(job) : Job();
}

ClassicAnalysis analysis_of(const Job& job) {
  const Matching matching(job);
  return analyze_classic(matching, tabulate(matching));
}

// What must hold whatever the dumps say: each entry is in one call at most,
// the calls of a collective are those it names, and nobody is both there and
// missing.
void expect_sound(const Job& job, const ClassicAnalysis& analysis) {
  std::vector<std::vector<bool>> seen;
  for (const RankDump& dump : job.ranks)
    seen.emplace_back(dump.entries.size(), false);
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < analysis.collectives.size(); ++i) {
    const ClassicCollective& collective = analysis.collectives[i];
    ASSERT_EQ(collective.first_call, calls);
    calls += collective.call_count;
    ASSERT_LE(calls, analysis.calls.size());
    const ClassicProblem* const problem = analysis.problem(collective);
    EXPECT_FALSE(collective.matched && problem != nullptr);
    bool shown = false;
    for (std::uint64_t c = collective.first_call; c < calls; ++c) {
      const ClassicEntry where = analysis.calls[c].where;
      EXPECT_EQ(analysis.calls[c].collective, i);
      ASSERT_LT(where.rank, job.ranks.size());
      ASSERT_LT(where.entry, job.ranks[where.rank].entries.size());
      EXPECT_FALSE(seen[where.rank][where.entry]);
      seen[where.rank][where.entry] = true;
      shown = shown || where == collective.shown;
      if (problem != nullptr) {
        EXPECT_THAT(problem->missing,
                    Each(testing::Ne(job.ranks[where.rank].rank)));
      }
    }
    EXPECT_TRUE(shown);
  }
  EXPECT_EQ(calls, analysis.calls.size());
}

TEST(ClassicAnalysis, MatchesAllOfAHealthyJob) {
  const Job job = classic_job(classic_corpus("nccl_healthy"));
  const ClassicAnalysis analysis = analysis_of(job);
  EXPECT_THAT(analysis.problems, IsEmpty());
  EXPECT_THAT(analysis.collectives,
              Each(testing::Field(&ClassicCollective::matched, true)));
  EXPECT_FALSE(analysis.unfinished);
  EXPECT_EQ(analysis.calls.size(), job.entry_count());
  expect_sound(job, analysis);
}

TEST(ClassicAnalysis, NamesTheRankThatNeverJoined) {
  const Job job = classic_job(classic_corpus("nccl_mesh_hang"));
  const ClassicAnalysis analysis = analysis_of(job);
  std::vector<Rank> accused;
  for (const ClassicProblem& problem : analysis.problems)
    if (problem.reported)
      accused.insert(accused.end(), problem.accused.begin(),
                     problem.accused.end());
  EXPECT_THAT(accused, ElementsAre(Rank{1}, Rank{1}));
  EXPECT_EQ(analysis.problems.size(), 3u);  // rank 0 is held up in the third
}

TEST(ClassicAnalysis, FindsTheFirstThatIsNotFinished) {
  const Job job = classic_job(classic_corpus("nccl_missing_rank"));
  const ClassicAnalysis analysis = analysis_of(job);
  ASSERT_TRUE(analysis.unfinished);
  EXPECT_EQ(entry_at(job, analysis.unfinished->where).sequence, 6);
  EXPECT_THAT(analysis.unfinished->ranks,
              ElementsAre(testing::Pair(
                  State::kScheduled, ElementsAre(Rank{0}, Rank{1}, Rank{3}))));
}

TEST(ClassicAnalysis, HoldsForAllRealJobs) {
  for (const auto& folder : fs::directory_iterator(classic_corpus(""))) {
    const std::string name = folder.path().filename();
    const Job job = classic_job(folder.path(), name.substr(0, name.find('_')));
    SCOPED_TRACE(name);
    expect_sound(job, analysis_of(job));
  }
}

// A dump may say anything; the analysis must hold for what was read of it.
TEST(ClassicAnalysis, HoldsForDamagedDumps) {
  for (const std::string name :
       {"nccl_p2p_ring_coalesced", "nccl_coalesced_collectives",
        "nccl_all_to_all_uneven"}) {
    const Result<TemporaryFolder> folder = TemporaryFolder::create();
    ASSERT_TRUE(folder);
    for (int rank = 0; rank < 4; ++rank)
      fs::copy_file(
          classic_corpus(name) + "/nccl_trace_rank_" + std::to_string(rank),
          folder->path() / ("nccl_trace_rank_" + std::to_string(rank)));
    const fs::path victim = folder->path() / "nccl_trace_rank_1";
    const std::string whole = read_file(victim);
    for (std::size_t at = 0; at < whole.size(); at += 7) {
      std::string broken = whole;
      broken[at] = static_cast<char>(broken[at] ^ (1 << (at % 8)));
      write_file(victim, broken);
      const Job job = classic_job(folder->path());
      expect_sound(job, analysis_of(job));
    }
    for (std::size_t size = 1; size < whole.size(); size += 41) {
      write_file(victim, whole.substr(0, size));
      const Job job = classic_job(folder->path());
      expect_sound(job, analysis_of(job));
    }
  }
}

TEST(ClassicAlignment, DropsNothingWhereRecordsDoNotCompare) {
  EXPECT_THAT(aligned_starts(classic_job(classic_corpus("nccl_wrapped"))),
              Each(0u));
}

}  // namespace
}  // namespace postflight
