#include "base/shared_temporary_folder.h"

#include "base/child_process.h"
#include "base/fake_clock.h"
#include "base/test_files.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace postflight {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::size_t kRanks = 4;

// Four processes that meet in one folder and share one in another.
class SharedTemporaryFolderOfFour : public testing::Test {
 protected:
  SharedTemporaryFolderOfFour() {
    fs::create_directory(meeting_);
    fs::create_directory(parent_);
  }

  SharedFolderOptions options(std::size_t rank) const {
    return {.rank = rank, .world_size = kRanks, .parent = parent_};
  }

  // What most ranks do: leave a file in the folder, and then it is done.
  int take_part(std::size_t rank) {
    FolderRendezvous rendezvous(meeting_, clock_);
    Result<SharedTemporaryFolder> folder =
        SharedTemporaryFolder::create(rendezvous, clock_, options(rank));
    if (!folder || folder->path().parent_path() != parent_)
      return 1;
    write_file(folder->path() / std::to_string(rank), "x");
    if (!fs::exists(folder->path() / std::to_string(rank)))
      return 2;
    if (!folder->finish())
      return 3;
    return rank == 0 && fs::exists(folder->path()) ? 4 : 0;
  }

  // Joins, and leaves again because of an error elsewhere.
  Result<> fail_early(std::size_t rank) {
    FolderRendezvous rendezvous(meeting_, clock_);
    const SharedTemporaryFolder folder =
        TRY(SharedTemporaryFolder::create(rendezvous, clock_, options(rank)));
    return fail(ErrorKind::kCorrupt, "rank {} has found nothing", rank);
  }

  TemporaryFolder scratch_ = scratch_folder();
  fs::path meeting_ = scratch_.path() / "meeting";
  fs::path parent_ = scratch_.path() / "parent";
  PatientClock clock_;
};

TEST_F(SharedTemporaryFolderOfFour, GoesWhenAllAreDone) {
  std::vector<ChildProcess> ranks;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&] { return take_part(rank); });

  for (const ChildProcess& rank : ranks)
    EXPECT_EQ(rank.wait(), 0);
  EXPECT_TRUE(fs::is_empty(parent_));
  EXPECT_TRUE(fs::is_empty(meeting_));
}

TEST_F(SharedTemporaryFolderOfFour, StaysUntilTheLastRankIsDone) {
  const ChildProcess rank_0([&] { return take_part(0); });
  const ChildProcess rank_1([&] { return take_part(1); });
  const ChildProcess rank_2([&] { return take_part(2); });
  FolderRendezvous rendezvous(meeting_, clock_);
  std::optional<SharedTemporaryFolder> folder =
      must(SharedTemporaryFolder::create(rendezvous, clock_, options(3)));
  ASSERT_EQ(rank_1.wait(), 0);
  ASSERT_EQ(rank_2.wait(), 0);
  EXPECT_TRUE(fs::exists(folder->path() / "2"));

  folder.reset();

  EXPECT_EQ(rank_0.wait(), 0);
  EXPECT_TRUE(fs::is_empty(parent_));
}

TEST_F(SharedTemporaryFolderOfFour, GoesWhenARankFails) {
  std::vector<ChildProcess> ranks;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&] {
      if (rank != 2)
        return take_part(rank);
      return message_of(fail_early(rank)) == "rank 2 has found nothing" ? 0 : 1;
    });

  for (const ChildProcess& rank : ranks)
    EXPECT_EQ(rank.wait(), 0);
  EXPECT_TRUE(fs::is_empty(parent_));
  EXPECT_TRUE(fs::is_empty(meeting_));
}

TEST_F(SharedTemporaryFolderOfFour, GoesWhenRankZeroFails) {
  std::vector<ChildProcess> ranks;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&] {
      if (rank != 0)
        return take_part(rank);
      return message_of(fail_early(rank)) == "rank 0 has found nothing" ? 0 : 1;
    });

  for (const ChildProcess& rank : ranks)
    EXPECT_EQ(rank.wait(), 0);
  EXPECT_TRUE(fs::is_empty(parent_));
}

TEST_F(SharedTemporaryFolderOfFour, GoesWhenARankDied) {
  Gate others_have_ended;
  const ChildProcess rank_0([&] {
    others_have_ended.only_wait();
    FakeClock impatient;
    FolderRendezvous rendezvous(meeting_, impatient);
    Result<SharedTemporaryFolder> folder =
        SharedTemporaryFolder::create(rendezvous, impatient, options(0));
    if (!folder || !others_have_ended.wait())
      return 1;
    const std::string message = message_of(folder->finish());
    return message ==
                   "1 of 4 ranks, the first of them rank 3, did not "
                   "finish within 5 min; removed the shared folder " +
                       folder->path().string() + " anyway"
               ? 0
               : 2;
  });
  const ChildProcess rank_1([&] { return take_part(1); });
  const ChildProcess rank_2([&] { return take_part(2); });
  const ChildProcess rank_3([&]() -> int {
    FolderRendezvous rendezvous(meeting_, clock_);
    const Result<SharedTemporaryFolder> folder =
        SharedTemporaryFolder::create(rendezvous, clock_, options(3));
    ::_exit(folder ? 9 : 1);
  });
  EXPECT_EQ(rank_1.wait(), 0);
  EXPECT_EQ(rank_2.wait(), 0);
  EXPECT_EQ(rank_3.wait(), 9);

  others_have_ended.open();

  EXPECT_EQ(rank_0.wait(), 0);
  EXPECT_TRUE(fs::is_empty(parent_));
}

TEST_F(SharedTemporaryFolderOfFour, TellsTheOthersWhyItCouldNotBeMade) {
  fs::remove(parent_);
  FolderRendezvous rendezvous(meeting_, clock_);
  const std::string why =
      "cannot create a temporary folder in " + parent_.string() +
      ": No such file or directory; set TMPDIR to a writable folder";

  EXPECT_EQ(
      message_of(SharedTemporaryFolder::create(rendezvous, clock_, options(0))),
      why);
  EXPECT_EQ(
      message_of(SharedTemporaryFolder::create(rendezvous, clock_, options(1))),
      "rank 0 could not create the shared folder: " + why);
}

TEST_F(SharedTemporaryFolderOfFour, HasToBeSeenByAllRanks) {
  FolderRendezvous rendezvous(meeting_, clock_);
  ASSERT_EQ(message_of(rendezvous.publish("temporary_folder", "+/not_here")),
            "no error");

  EXPECT_EQ(
      message_of(SharedTemporaryFolder::create(rendezvous, clock_, options(1))),
      "rank 1 cannot see /not_here, which rank 0 created; give a parent "
      "folder that all ranks share");
  // It is done with the folder all the same.
  EXPECT_TRUE(fs::exists(meeting_ / "temporary_folder.done.1"));
}

TEST_F(SharedTemporaryFolderOfFour, HasNoFifthRank) {
  FolderRendezvous rendezvous(meeting_, clock_);
  EXPECT_EQ(
      message_of(SharedTemporaryFolder::create(rendezvous, clock_, options(4))),
      "rank 4 is outside the group of 4");
}

TEST(SharedTemporaryFolder, IsAnOrdinaryOneWithoutAGroup) {
  const TemporaryFolder scratch = scratch_folder();
  {
    const Result<SharedTemporaryFolder> folder =
        SharedTemporaryFolder::create(scratch.path());
    ASSERT_TRUE(folder.has_value());
    EXPECT_TRUE(fs::is_directory(folder->path()));
    EXPECT_EQ(folder->path().parent_path(), scratch.path());
  }
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(SharedTemporaryFolder, NeedsNobodyInAGroupOfOne) {
  const TemporaryFolder scratch = scratch_folder();
  FakeClock clock;
  FolderRendezvous nowhere("/no_such_folder", clock);
  Result<SharedTemporaryFolder> folder =
      SharedTemporaryFolder::create(nowhere, clock, {.parent = scratch.path()});
  ASSERT_TRUE(folder.has_value());

  EXPECT_EQ(message_of(folder->finish()), "no error");

  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

}  // namespace
}  // namespace postflight
