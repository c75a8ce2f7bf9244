#include "flight/model/job_loader.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "base/test_files.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

std::string corpus(const std::string& name) {
  return std::string(TEST_DATA) + "/flight/" + name;
}

Job load(const std::string& path, const Context& context = {.threads = 2}) {
  const std::vector<std::string> paths = {path};
  Result<Job> job = load_job(paths, {}, context);
  EXPECT_TRUE(job) << (job ? "" : job.error().message());
  return job ? *std::move(job) : Job();
}

std::vector<int> ranks_of(const Job& job) {
  std::vector<int> ranks;
  for (const RankDump& dump : job.ranks)
    ranks.push_back(dump.rank.value);
  return ranks;
}

std::vector<std::string> kinds_of(const Job& job) {
  std::vector<std::string> kinds;
  for (const Finding& finding : job.findings)
    kinds.push_back(finding.kind);
  return kinds;
}

TEST(JobLoader, ReadsARealJob) {
  const Job job = load(corpus("nccl_missing_rank"));
  EXPECT_THAT(ranks_of(job), ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(job.groups.size(), 1u);
  EXPECT_EQ(job.text(job.groups[0].description), "default_pg");
  EXPECT_THAT(job.groups[0].members,
              ElementsAre(Rank{0}, Rank{1}, Rank{2}, Rank{3}));
  EXPECT_TRUE(job.groups[0].configured);
  EXPECT_THAT(job.findings, IsEmpty());

  const RankDump& rank = job.ranks[0];
  EXPECT_EQ(job.text(rank.version), "2.10");
  ASSERT_EQ(rank.entries.size(), 6u);
  const Entry last = rank.entries[5];
  const Call& call = job.call(last);
  EXPECT_EQ(job.text(call.name), "nccl:all_reduce");
  EXPECT_EQ(last.sequence, 6);
  EXPECT_EQ(last.record_id, 5);
  EXPECT_EQ(last.state, State::kScheduled);
  EXPECT_FALSE(last.retired);
  EXPECT_EQ(last.created, 1794725510857820895);
  EXPECT_EQ(job.tables.shapes(call.inputs)[0][0], 128);
  EXPECT_EQ(job.text(job.tables.dtypes(call.input_dtypes)[0]), "Float");
  const Frame& frame = job.tables.frame(job.tables.stack(last.stack)[2]);
  EXPECT_EQ(job.text(frame.function), "forward");
  EXPECT_EQ(job.text(frame.file), "/job/train.py");
  EXPECT_EQ(frame.line, 26);
  EXPECT_EQ(job.ranks[2].entries.size(), 5u);
}

TEST(JobLoader, ReadsEveryFolderOfTheCorpus) {
  int folders = 0;
  for (const auto& folder : fs::directory_iterator(corpus(""))) {
    const Job job = load(folder.path());
    ++folders;
    int dumps = 0;
    for (const auto& file : fs::directory_iterator(folder.path()))
      dumps +=
          file.path().filename().string().find("_rank_") != std::string::npos &&
                  fs::file_size(file) > 0
              ? 1
              : 0;
    EXPECT_EQ(job.ranks.size(), static_cast<std::size_t>(dumps))
        << folder.path();
    EXPECT_THAT(job.findings, IsEmpty()) << folder.path();
    for (const RankDump& rank : job.ranks)
      for (std::size_t i = 0; i < rank.entries.size(); ++i) {
        const Entry entry = rank.entries[i];
        ASSERT_LT(job.call(entry).group.value, job.groups.size());
        EXPECT_TRUE(job.group(job.call(entry).group).has(rank.rank));
        EXPECT_NE(entry.state, State::kUnknown);
        EXPECT_GT(entry.created, 0);
      }
  }
  EXPECT_EQ(folders, 37);
}

TEST(JobLoader, ReadsJsonLikePickle) {
  const Job pickle = load(corpus("nccl_missing_rank"));
  const Job json =
      load(std::string(TEST_DATA) + "/flight_json/nccl_missing_rank");
  ASSERT_THAT(ranks_of(json), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(json.ranks[0].json);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    ASSERT_EQ(json.ranks[rank].entries.size(),
              pickle.ranks[rank].entries.size());
    for (std::size_t i = 0; i < json.ranks[rank].entries.size(); ++i) {
      const Entry a = pickle.ranks[rank].entries[i];
      const Entry b = json.ranks[rank].entries[i];
      EXPECT_EQ(a.created, b.created);
      EXPECT_EQ(a.sequence, b.sequence);
      EXPECT_EQ(a.operation_id, b.operation_id);
      EXPECT_EQ(pickle.text(pickle.call(a).name), json.text(json.call(b).name));
      EXPECT_EQ(pickle.tables.shapes(pickle.call(a).inputs)[0][0],
                json.tables.shapes(json.call(b).inputs)[0][0]);
      EXPECT_EQ(b.stack, StackId{});
    }
  }
}

TEST(JobLoader, LearnsMembersFromUseWhereNoListHasThem) {
  const Job job = load(corpus("gloo_mesh_hang"));
  std::vector<std::string> seen;
  for (const Group& group : job.groups) {
    std::string text(job.text(group.description));
    for (const Rank member : group.members)
      text += " " + std::to_string(member.value);
    seen.push_back(text);
    EXPECT_FALSE(group.configured);
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre("tp_0 0 1", "dp_0 0 2",
                                                  "tp_1 2 3", "dp_1 1 3"));
}

TEST(JobLoader, TakesGloosUnnamedGroupForTheDefaultGroup) {
  const Job job = load(corpus("gloo_crashed_rank"));
  EXPECT_THAT(ranks_of(job), ElementsAre(0, 2, 3));
  EXPECT_THAT(job.without_dump(), ElementsAre(Rank{1}));
}

TEST(JobLoader, BoundsWhatAListOfMembersMayStandFor) {
  Context context;
  context.limits.max_group_members = 3;
  const Job job = load(corpus("nccl_missing_rank"), context);
  ASSERT_EQ(job.groups.size(), 1U);
  EXPECT_FALSE(job.groups[0].configured);
  EXPECT_EQ(job.groups[0].members.size(), 4U);  // inferred from entries
  std::vector<std::string> kinds;
  for (const Finding& finding : job.findings)
    kinds.push_back(finding.kind);
  EXPECT_EQ(kinds, std::vector<std::string>{"too_many_members"});
}

// Whatever the byte where a dump was cut off, the others are read, and its
// whole entries count.
TEST(JobLoader, UsesTheWholeEntriesOfADumpCutAnywhere) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const std::string good =
      read_file(corpus("nccl_missing_rank/nccl_trace_rank_0"));
  const std::string dump =
      read_file(corpus("nccl_missing_rank/nccl_trace_rank_1"));
  std::ofstream(folder->path() / "trace_0", std::ios::binary) << good;
  const std::string cut = folder->path() / "trace_1";
  std::size_t most = 0;
  for (std::size_t size = 0; size < dump.size(); ++size) {
    std::ofstream(cut, std::ios::binary) << dump.substr(0, size);
    const Job job = load(folder->path());
    ASSERT_FALSE(job.ranks.empty());
    EXPECT_EQ(job.ranks[0].entries.size(), 6u);
    if (job.ranks.size() == 1) {
      ASSERT_EQ(job.skipped.size(), 1u);
      EXPECT_EQ(job.skipped[0].empty, size == 0);
      continue;
    }
    EXPECT_FALSE(job.ranks[1].complete);
    EXPECT_THAT(kinds_of(job), ElementsAre("damaged_dump"));
    const std::size_t entries = job.ranks[1].entries.size();
    EXPECT_GE(entries, most);
    most = std::max(most, entries);
    for (std::size_t i = 0; i < entries; ++i)
      EXPECT_GT(job.ranks[1].entries[i].created, 0);
  }
  EXPECT_EQ(most, 6u);
}

TEST(JobLoader, NamesAndSkipsWhatIsNoDump) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  fs::copy(corpus("nccl_missing_rank/nccl_trace_rank_0"),
           folder->path() / "nccl_trace_rank_0");
  std::ofstream(folder->path() / "page.html") << "<html></html>";
  std::ofstream(folder->path() / "rank_3");
  const Job job = load(folder->path());
  EXPECT_THAT(ranks_of(job), ElementsAre(0));
  ASSERT_EQ(job.skipped.size(), 2u);
  EXPECT_EQ(job.skipped[0].reason,
            "not a flight-recorder dump: neither pickle nor JSON");
  EXPECT_EQ(
      job.skipped[1].reason,
      "the file is empty: the process was probably killed before it wrote "
      "its dump");
  EXPECT_EQ(job.skipped[1].rank, 3);
  EXPECT_TRUE(job.skipped[1].empty);
}

TEST(JobLoader, SaysWhenTwoFilesAreOfOneRank) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  for (const char* const host : {"a", "b"}) {
    fs::create_directory(folder->path() / host);
    fs::copy(corpus("nccl_missing_rank/nccl_trace_rank_0"),
             folder->path() / host / "nccl_trace_rank_0");
  }
  const Job job = load(folder->path());
  EXPECT_THAT(ranks_of(job), ElementsAre(0));
  EXPECT_THAT(kinds_of(job), ElementsAre("duplicate_rank"));
  EXPECT_TRUE(job.ranks[0].file.ends_with("/a/nccl_trace_rank_0"));
}

// Packed as somebody would who mails them.
TEST(JobLoader, ReadsCompressedDumpsAndArchives) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  const std::string from = corpus("nccl_missing_rank");
  const std::string to = folder->path();
  for (const std::string& command :
       {"cd " + from + " && gzip -c nccl_trace_rank_0 > " + to +
            "/nccl_trace_rank_0.gz",
        "cd " + from + " && tar czf " + to + "/some.tgz nccl_trace_rank_1",
        "cd " + from + " && tar cf " + to + "/more.tar nccl_trace_rank_[23]"})
    ASSERT_EQ(std::system(command.c_str()), 0);
  const Job job = load(to);
  EXPECT_THAT(ranks_of(job), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(job.ranks[0].entries.size(), 6u);
  EXPECT_EQ(job.ranks[3].file, to + "/more.tar/nccl_trace_rank_3");
}

TEST(JobLoader, FollowsNoLinkTwice) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  fs::create_directory(folder->path() / "sub");
  fs::copy(corpus("nccl_missing_rank/nccl_trace_rank_0"),
           folder->path() / "sub" / "nccl_trace_rank_0");
  fs::create_directory_symlink("..", folder->path() / "sub" / "loop");
  EXPECT_THAT(ranks_of(load(folder->path())), ElementsAre(0));
}

TEST(JobLoader, RefusesWhatIsNotThere) {
  const std::vector<std::string> paths = {"/nonexistent/dumps"};
  const Result<Job> job = load_job(paths, {}, {});
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().message(),
            "/nonexistent/dumps: No such file or directory");
}

}  // namespace
}  // namespace postflight
