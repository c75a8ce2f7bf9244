#include "api/profile.h"

#include <algorithm>
#include <csignal>
#include <fstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace postflight {
namespace {

using ::testing::ElementsAre;

const std::string kProfiles = TEST_DATA "/profile/";

class ProfileRunTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<ProfileRun>> start(const std::string& script) {
    return ProfileRun::start(
        {.command = {"/bin/sh", "-c", script}, .output = file_}, {});
  }

  Result<TemporaryFolder> folder_ = TemporaryFolder::create();
  std::filesystem::path file_ = folder_->path() / "x.pflog";
};

TEST_F(ProfileRunTest, SaysHowTheProgramFailed) {
  const auto run = start("exit 3");
  ASSERT_TRUE(run);
  EXPECT_EQ((*run)->file(), file_);
  const Result<ProfileOutcome> outcome = (*run)->finish();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->failure, "exit status 3");
  EXPECT_EQ(outcome->status, 3);
  EXPECT_EQ(outcome->signal, 0);
  EXPECT_FALSE(outcome->interrupted);
  const ReadProfiles read =
      read_profiles(std::vector{outcome->file.native()}, {});
  EXPECT_EQ(read.profile.notes.at("command"), "/bin/sh -c exit 3");
}

// Issue 18: a program that handles a signal may get it again.
TEST_F(ProfileRunTest, PassesEverySignalOn) {
  const auto run = start(
      "n=0; trap 'n=$((n+1)); [ $n -lt 3 ] || exit 7' TERM USR1; : > " +
      (folder_->path() / "ready").native() + "; while :; do sleep 0.01; done");
  ASSERT_TRUE(run);
  const Result<ProfileOutcome> outcome =
      (*run)->finish([&, sent = 0]() mutable {
        if (!std::filesystem::exists(folder_->path() / "ready"))
          return;
        if (++sent % 30 == 0)
          ::kill(::getpid(), SIGUSR1);
        else if (sent % 10 == 0)
          (*run)->interrupt(SIGTERM, false);
      });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, 7);
  EXPECT_TRUE(outcome->interrupted);
}

TEST_F(ProfileRunTest, ShowsNativeFramesOfProgramsThatWait) {
  auto run = ProfileRun::start({.command = {"sleep", "0.5"},
                                .interval = std::chrono::milliseconds(20),
                                .mode = ProfileMode::kWall,
                                .native = true,
                                .output = file_},
                               {});
  ASSERT_TRUE(run);
  const Result<ProfileOutcome> outcome = (*run)->finish();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, 0);
  const std::string file = outcome->file.native();
  const ReadProfiles read = read_profiles({&file, 1}, {});
  EXPECT_TRUE(
      std::ranges::any_of(read.profile.frames, [](const ProfileFrame& frame) {
        return frame.kind == FrameKind::kNative;
      }));
}

TEST_F(ProfileRunTest, EndsAnAttachedProfileBySignal) {
  const auto run = ProfileRun::start({.pid = ::getpid(), .output = file_}, {});
  ASSERT_TRUE(run);
  (*run)->interrupt(SIGINT, true);
  const Result<ProfileOutcome> outcome = (*run)->finish();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->failure, "");
  EXPECT_TRUE(outcome->interrupted);
}

TEST_F(ProfileRunTest, KeepsAnOldFileIfTheProgramDoesNotExist) {
  std::ofstream(file_) << "old";
  const auto run =
      ProfileRun::start({.command = {"/no/such"}, .output = file_}, {});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message(),
            "cannot start /no/such: No such file or directory");
  std::string text;
  std::ifstream(file_) >> text;
  EXPECT_EQ(text, "old");
}

TEST_F(ProfileRunTest, NeedsEitherACommandOrAProcess) {
  for (const bool both : {false, true}) {
    ProfileRequest request;
    if (both) {
      request.command = {"true"};
      request.pid = 1;
    }
    const auto run = ProfileRun::start(std::move(request), {});
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().message(),
              "a profile needs either a command or a process");
  }
}

TEST(ReadProfiles, CombinesFilesAndKeepsProblems) {
  const std::vector<std::string> files = {kProfiles + "train-rank0.pflog",
                                          kProfiles + "line_tables.txt",
                                          kProfiles + "train-rank1.pflog"};
  int calls = 0;
  const ReadProfiles read = read_profiles(files, {}, [&calls] { ++calls; });
  EXPECT_EQ(calls, 3);
  EXPECT_THAT(read.files, ElementsAre(files[0], files[2]));
  EXPECT_EQ(read.profile.samples.size(), 300U);
  ASSERT_EQ(read.problems.size(), 1U);
  EXPECT_EQ(
      read.problems[0].message(),
      files[1] + ": not a profile; postflight profile -o FILE writes one");
}

}  // namespace
}  // namespace postflight
