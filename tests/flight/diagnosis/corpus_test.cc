// The verdict on every real job of the corpus, against its truth.json.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "flight/diagnosis/diagnosis.h"
#include "flight/model/job_loader.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

// Below the folder of test data.
std::vector<std::string> folders(const std::string& of) {
  std::vector<std::string> found;
  for (const auto& folder :
       fs::directory_iterator(std::string(TEST_DATA) + "/" + of))
    found.push_back(folder.path().filename());
  std::ranges::sort(found);
  return found;
}

nlohmann::json truth_of(const std::string& folder) {
  std::ifstream in(std::string(TEST_DATA) + "/" + folder + "/truth.json");
  return nlohmann::json::parse(in);
}

std::vector<int> culprits_of(const Verdict& verdict) {
  std::vector<int> ranks;
  for (const Rank rank : verdict.culprits)
    ranks.push_back(rank.value);
  return ranks;
}

bool agrees(const Verdict& verdict, const nlohmann::json& truth) {
  const std::string kind(kind_name(verdict.kind));
  const std::vector<int> culprits = culprits_of(verdict);
  std::vector<std::string> kinds =
      truth.value("accept", std::vector<std::string>());
  kinds.push_back(truth["kind"]);
  if (std::ranges::find(kinds, kind) != kinds.end() &&
      culprits == truth["culprits"].get<std::vector<int>>())
    return true;
  for (const auto& also : truth.value("also", nlohmann::json::array()))
    if (also["kind"] == kind &&
        culprits == also["culprits"].get<std::vector<int>>())
      return true;
  // Nobody may be accused where the truth is healthy or all are stuck.
  return std::ranges::find(kinds, kind) != kinds.end() && culprits.empty() &&
         (kind == "all_joined_stuck" || kind == "inconclusive" ||
          kind == "in_progress" || kind == "healthy");
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, IsDiagnosedRight) {
  const std::string folder = GetParam();
  const std::vector<std::string> paths = {std::string(TEST_DATA) + "/flight/" +
                                          folder};
  const Result<Job> job = load_job(paths, {}, {.threads = 1});
  ASSERT_TRUE(job);
  const Verdict verdict = diagnose(Matching(*job));
  const nlohmann::json truth = truth_of("flight/" + folder);
  EXPECT_TRUE(agrees(verdict, truth))
      << kind_name(verdict.kind) << " "
      << testing::PrintToString(culprits_of(verdict)) << ": " << verdict.summary
      << "\ntruth: " << truth.dump();
  if (verdict.confidence == Confidence::kCertain) {
    EXPECT_EQ(culprits_of(verdict), truth["culprits"].get<std::vector<int>>());
  }
  EXPECT_EQ(verdict.ranks.size(), job->world().size());
}

INSTANTIATE_TEST_SUITE_P(Flight, Corpus, testing::ValuesIn(folders("flight")),
                         [](const auto& tested) { return tested.param; });

// Real jobs of 8 ranks with one fault or two, or none, dumped at any moment.
class RealJobs : public testing::TestWithParam<std::string> {};

TEST_P(RealJobs, AreDiagnosedRightWithTheirSecondFault) {
  const std::string folder = "flight_real/" + GetParam();
  const std::vector<std::string> paths = {std::string(TEST_DATA) + "/" +
                                          folder};
  const Result<Job> job = load_job(paths, {}, {.threads = 1});
  ASSERT_TRUE(job);
  const Verdict verdict = diagnose(Matching(*job));
  const nlohmann::json truth = truth_of(folder);
  EXPECT_TRUE(agrees(verdict, truth))
      << kind_name(verdict.kind) << " "
      << testing::PrintToString(culprits_of(verdict)) << ": "
      << verdict.summary;
  if (!truth.contains("also_fault")) {
    EXPECT_TRUE(verdict.also.empty());
    return;
  }
  ASSERT_EQ(verdict.also.size(), 1);
  EXPECT_EQ(kind_name(verdict.also[0].kind), truth["also_fault"]["kind"]);
  std::vector<int> ranks;
  for (const Rank rank : verdict.also[0].culprits)
    ranks.push_back(rank.value);
  EXPECT_EQ(ranks, truth["also_fault"]["culprits"].get<std::vector<int>>());
  EXPECT_FALSE(verdict.also[0].evidence.empty());
}

INSTANTIATE_TEST_SUITE_P(Flight, RealJobs,
                         testing::ValuesIn(folders("flight_real")),
                         [](const auto& tested) { return tested.param; });

// Jobs that ran while each rank dumped, at its own moment.
class MovingCorpus : public testing::TestWithParam<std::string> {};

TEST_P(MovingCorpus, AccusesNobody) {
  const std::string folder = "flight_moving/" + GetParam();
  const std::vector<std::string> paths = {std::string(TEST_DATA) + "/" +
                                          folder};
  const Result<Job> job = load_job(paths, {}, {.threads = 1});
  ASSERT_TRUE(job);
  const Verdict verdict = diagnose(Matching(*job));
  EXPECT_TRUE(agrees(verdict, truth_of(folder)))
      << kind_name(verdict.kind) << " "
      << testing::PrintToString(culprits_of(verdict)) << ": "
      << verdict.summary;
}

INSTANTIATE_TEST_SUITE_P(Flight, MovingCorpus,
                         testing::ValuesIn(folders("flight_moving")),
                         [](const auto& tested) { return tested.param; });

// What is true of a rank whose dump breaks off is not that it left none.
TEST(Diagnosis, TellsACutDumpFromAMissingOne) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const fs::path from = fs::path(TEST_DATA) / "flight/nccl_missing_rank";
  for (const char* const rank : {"0", "1", "2"})
    fs::copy(from / (std::string("nccl_trace_rank_") + rank), folder->path());
  fs::resize_file(folder->path() / "nccl_trace_rank_2", 1500);
  const std::vector<std::string> paths = {folder->path()};
  const Result<Job> job = load_job(paths, {}, {.threads = 1});
  ASSERT_TRUE(job);
  EXPECT_EQ(
      diagnose(Matching(*job)).summary,
      "ranks 2-3 left no complete dump, and 2 of 4 ranks wait for them in "
      "all_reduce #6 of default_pg");
}

// What a person on call finds: one good dump, one cut anywhere, one empty, a
// page that somebody saved there, and a dump of another job.
TEST(Diagnosis, StandsAFolderOfAllKinds) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const fs::path data = fs::path(TEST_DATA) / "flight";
  const fs::path from = data / "nccl_missing_rank";
  fs::copy(from / "nccl_trace_rank_0", folder->path());
  std::ofstream(folder->path() / "nccl_trace_rank_1");
  std::ofstream(folder->path() / "page.html") << "<html></html>";
  fs::copy(data / "nccl_tp_fsdp/nccl_trace_rank_1",
           folder->path() / "nccl_trace_rank_7");
  const fs::path cut = folder->path() / "nccl_trace_rank_2";
  const auto whole = fs::file_size(from / "nccl_trace_rank_2");
  const std::vector<std::string> paths = {folder->path()};
  for (std::uintmax_t size = 0; size <= whole; ++size) {
    fs::copy_file(from / "nccl_trace_rank_2", cut,
                  fs::copy_options::overwrite_existing);
    fs::resize_file(cut, size);
    const Result<Job> job = load_job(paths, {}, {.threads = 1});
    ASSERT_TRUE(job) << size;
    const Verdict verdict = diagnose(Matching(*job));
    // Rank 0 waits, and rank 7 is of another job: neither is ever accused.
    for (const Rank rank : verdict.culprits)
      EXPECT_TRUE(rank.value >= 1 && rank.value <= 3) << size;
    EXPECT_TRUE(std::ranges::any_of(verdict.findings, [](const Finding& one) {
      return one.kind == "rank_not_in_group";
    })) << size;
    EXPECT_EQ(job->skipped.size(), job->find({2}) == nullptr ? 3u : 2u) << size;
    if (size == whole) {
      EXPECT_EQ(verdict.summary,
                "rank 2 never joined all_reduce #6 of default_pg; 1 of 5 ranks "
                "waits for it");
    }
  }
}

class JsonCorpus : public testing::TestWithParam<std::string> {};

TEST_P(JsonCorpus, IsDiagnosedLikeThePickles) {
  const std::string folder = GetParam();
  const std::vector<std::string> paths = {std::string(TEST_DATA) +
                                          "/flight_json/" + folder};
  const Result<Job> job = load_job(paths, {}, {.threads = 1});
  ASSERT_TRUE(job);
  const Verdict verdict = diagnose(Matching(*job));
  EXPECT_TRUE(agrees(verdict, truth_of("flight/" + folder)))
      << kind_name(verdict.kind) << " "
      << testing::PrintToString(culprits_of(verdict)) << ": "
      << verdict.summary;
}

INSTANTIATE_TEST_SUITE_P(Flight, JsonCorpus,
                         testing::Values("gloo_missing_rank", "gloo_straggler",
                                         "nccl_missing_rank", "nccl_straggler"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace postflight
