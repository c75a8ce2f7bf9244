// The verdict on every real job of the corpus, against its truth.json.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "flight/diagnosis.h"
#include "flight/job_loader.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders() {
  std::vector<std::string> found;
  for (const auto& folder :
       fs::directory_iterator(std::string(TEST_DATA) + "/flight"))
    found.push_back(folder.path().filename());
  std::ranges::sort(found);
  return found;
}

nlohmann::json truth_of(const std::string& folder) {
  std::ifstream in(std::string(TEST_DATA) + "/flight/" + folder +
                   "/truth.json");
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
         (kind == "all_joined_stuck" || kind == "inconclusive");
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, IsDiagnosedRight) {
  const std::string folder = GetParam();
  const std::vector<std::string> paths = {std::string(TEST_DATA) + "/flight/" +
                                          folder};
  const Result<Job> job = load_job(paths, {.threads = 1});
  ASSERT_TRUE(job);
  const Verdict verdict = diagnose(*job);
  const nlohmann::json truth = truth_of(folder);
  EXPECT_TRUE(agrees(verdict, truth))
      << kind_name(verdict.kind) << " "
      << testing::PrintToString(culprits_of(verdict)) << ": " << verdict.summary
      << "\ntruth: " << truth.dump();
  if (verdict.confidence == Confidence::kCertain) {
    EXPECT_EQ(culprits_of(verdict), truth["culprits"].get<std::vector<int>>());
  }
  EXPECT_EQ(verdict.ranks.size(), job->world().size());
}

INSTANTIATE_TEST_SUITE_P(Flight, Corpus, testing::ValuesIn(folders()),
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
  const Result<Job> job = load_job(paths, {.threads = 1});
  ASSERT_TRUE(job);
  EXPECT_EQ(diagnose(*job).summary,
            "ranks 2-3 left no whole dump, and 2 of 4 ranks wait for them in "
            "all_reduce #6 of default_pg");
}

class JsonCorpus : public testing::TestWithParam<std::string> {};

TEST_P(JsonCorpus, IsDiagnosedLikeThePickles) {
  const std::string folder = GetParam();
  const std::vector<std::string> paths = {std::string(TEST_DATA) +
                                          "/flight_json/" + folder};
  const Result<Job> job = load_job(paths, {.threads = 1});
  ASSERT_TRUE(job);
  const Verdict verdict = diagnose(*job);
  EXPECT_TRUE(agrees(verdict, truth_of(folder)))
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
