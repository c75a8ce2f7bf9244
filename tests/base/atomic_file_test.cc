#include "base/atomic_file.h"

#include "base/child_process.h"
#include "base/test_files.h"

#include <csignal>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace postflight {
namespace {

namespace fs = std::filesystem;

std::size_t entries_of(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), {}));
}

Result<> put(const fs::path& target, std::string_view contents) {
  AtomicFile file = TRY(AtomicFile::create(target, Existing::kReplace));
  TRY(file.write(as_bytes(contents)));
  return file.commit();
}

unsigned permissions_of(const fs::path& path) {
  return static_cast<unsigned>(fs::status(path).permissions());
}

TEST(AtomicFile, AppearsWhenCommitted) {
  const TemporaryFolder folder = scratch_folder();
  const fs::path target = folder.path() / "out";
  AtomicFile file = must(AtomicFile::create(target));
  EXPECT_EQ(message_of(file.write(as_bytes("first, "))), "no error");
  EXPECT_EQ(message_of(file.write(as_bytes("second"))), "no error");
  EXPECT_FALSE(fs::exists(target));

  EXPECT_EQ(message_of(file.commit()), "no error");

  EXPECT_EQ(read_file(target), "first, second");
  EXPECT_EQ(entries_of(folder.path()), 1U);
}

TEST(AtomicFile, LeavesNothingBehindWithoutACommit) {
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "out", "old");
  {
    AtomicFile file =
        must(AtomicFile::create(folder.path() / "out", Existing::kReplace));
    EXPECT_EQ(message_of(file.write(as_bytes("new"))), "no error");
    EXPECT_EQ(entries_of(folder.path()), 2U);
  }
  EXPECT_EQ(entries_of(folder.path()), 1U);
  EXPECT_EQ(read_file(folder.path() / "out"), "old");
}

TEST(AtomicFile, ReplacesOnlyIfToldTo) {
  const TemporaryFolder folder = scratch_folder();
  const fs::path target = folder.path() / "out";
  write_file(target, "old");
  const std::string refusal =
      target.string() +
      " exists; name another file, or replace it with --force";

  EXPECT_EQ(message_of(AtomicFile::create(target)), refusal);
  EXPECT_EQ(message_of(AtomicFile::check(target, Existing::kRefuse)), refusal);
  EXPECT_EQ(message_of(AtomicFile::check(target, Existing::kReplace)),
            "no error");
  EXPECT_EQ(read_file(target), "old");
  EXPECT_EQ(entries_of(folder.path()), 1U);
}

TEST(AtomicFile, DoesNotReplaceAFileThatAppearsMeanwhile) {
  const TemporaryFolder folder = scratch_folder();
  const fs::path target = folder.path() / "out";
  AtomicFile file = must(AtomicFile::create(target));
  ASSERT_EQ(message_of(file.write(as_bytes("ours"))), "no error");
  write_file(target, "theirs");

  EXPECT_EQ(message_of(file.commit()),
            target.string() +
                " exists; name another file, or replace it with --force");

  EXPECT_EQ(read_file(target), "theirs");
}

TEST(AtomicFile, TakesPiecesOfAnySize) {
  const TemporaryFolder folder = scratch_folder();
  AtomicFile file = must(AtomicFile::create(folder.path() / "out"));
  std::string expected;
  for (const std::size_t size : {1UL, 1'000'000UL, 48'576UL, 0UL, 3'000'000UL,
                                 1'048'575UL, 2UL, 1'048'576UL, 7UL}) {
    const std::string piece(size,
                            static_cast<char>('a' + expected.size() % 26));
    expected += piece;
    ASSERT_EQ(message_of(file.write(as_bytes(piece))), "no error");
  }
  ASSERT_EQ(message_of(file.commit()), "no error");
  EXPECT_TRUE(read_file(folder.path() / "out") == expected);
}

TEST(AtomicFile, KeepsThePermissionsOfItsTarget) {
  const TemporaryFolder folder = scratch_folder();
  const fs::path target = folder.path() / "out";
  write_file(target, "old");
  ASSERT_EQ(::chmod(target.c_str(), 0640), 0);

  EXPECT_EQ(message_of(put(target, "new")), "no error");

  EXPECT_EQ(read_file(target), "new");
  EXPECT_EQ(permissions_of(target), 0640U);
}

TEST(AtomicFile, HasThePermissionsTheUmaskLeaves) {
  const TemporaryFolder folder = scratch_folder();
  const mode_t previous = ::umask(0027);
  EXPECT_EQ(message_of(put(folder.path() / "out", "new")), "no error");
  ::umask(previous);
  EXPECT_EQ(permissions_of(folder.path() / "out"), 0640U);
}

TEST(AtomicFile, ReplacesALinkAndNotWhatItPointsAt) {
  const TemporaryFolder folder = scratch_folder();
  const fs::path file = folder.path() / "file";
  write_file(file, "old");
  ASSERT_EQ(::chmod(file.c_str(), 0640), 0);
  for (const char* const target : {"file", "not there", "link"}) {
    const fs::path link = folder.path() / "link";
    fs::remove(link);
    fs::create_symlink(target, link);

    EXPECT_EQ(message_of(put(link, "new")), "no error");

    EXPECT_FALSE(fs::is_symlink(link));
    EXPECT_EQ(read_file(link), "new");
    EXPECT_EQ(read_file(file), "old");
    EXPECT_FALSE(fs::exists(folder.path() / "not there"));
  }
}

TEST(AtomicFile, RefusesALinkUnlessItMayBeReplaced) {
  const TemporaryFolder folder = scratch_folder();
  const fs::path link = folder.path() / "link";
  for (const char* const target : {"file", "not there", "link"}) {
    fs::remove(link);
    fs::create_symlink(target, link);
    EXPECT_EQ(message_of(AtomicFile::create(link)),
              link.string() +
                  " is a symlink; name the file itself, or replace the link "
                  "with --force");
  }
}

TEST(AtomicFile, RefusesALinkThatAppearsBeforeTheCommit) {
  const TemporaryFolder folder = scratch_folder();
  const fs::path link = folder.path() / "link";
  AtomicFile file = must(AtomicFile::create(link));
  fs::create_symlink("not there", link);
  EXPECT_EQ(
      message_of(file.commit()),
      link.string() + " exists; name another file, or replace it with --force");
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST(AtomicFile, RefusesToReplaceALinkToADevice) {
  const TemporaryFolder folder = scratch_folder();
  const fs::path link = folder.path() / "link";
  fs::create_symlink("/dev/null", link);
  EXPECT_EQ(message_of(put(link, "new")),
            "cannot write " + link.string() +
                ": it is not a regular file and cannot be replaced; choose "
                "another name");
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST(AtomicFile, RefusesFolders) {
  EXPECT_EQ(message_of(AtomicFile::create("/proc")),
            "cannot write /proc: it is a folder; name a file inside it");
}

TEST(AtomicFile, RefusesToReplaceDevices) {
  EXPECT_EQ(message_of(AtomicFile::create("/dev/null")),
            "cannot write /dev/null: it is not a regular file and cannot be "
            "replaced; choose another name");
}

TEST(AtomicFile, RefusesANameWithoutAFile) {
  EXPECT_EQ(message_of(AtomicFile::create("no_such_folder/")),
            "cannot write \"no_such_folder/\": it does not name a file");
}

TEST(AtomicFile, SaysThatTheFolderIsMissing) {
  const TemporaryFolder folder = scratch_folder();
  const std::string missing = (folder.path() / "missing").string();

  EXPECT_EQ(message_of(AtomicFile::create(missing + "/out")),
            "cannot write " + missing + "/out: the folder " + missing +
                " does not exist; create it first");
}

// Points the descriptor of the only hidden file in `folder` at /dev/full.
void fill_the_disk(const fs::path& folder) {
  for (const auto& link : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const fs::path open_file = fs::read_symlink(link.path(), gone);
    if (open_file.parent_path() != folder)
      continue;
    const int full = ::open("/dev/full", O_WRONLY);
    ASSERT_GE(::dup2(full, std::stoi(link.path().filename().string())), 0);
    ::close(full);
    return;
  }
  FAIL() << "nothing is open in " << folder;
}

TEST(AtomicFile, SaysWhatToDoWhenTheDiskIsFull) {
  const TemporaryFolder folder = scratch_folder();
  const std::string target = (folder.path() / "out").string();
  write_file(target, "old");
  {
    AtomicFile file = must(AtomicFile::create(target, Existing::kReplace));
    fill_the_disk(folder.path());
    ASSERT_EQ(message_of(file.write(as_bytes("new"))), "no error");

    EXPECT_EQ(message_of(file.commit()),
              "cannot write " + target +
                  ": No space left on device; free some space there or name a "
                  "file on another disk");
    EXPECT_EQ(message_of(file.commit()),
              "cannot write " + target +
                  ": already committed, or an earlier write failed");
  }
  EXPECT_EQ(read_file(target), "old");
  EXPECT_EQ(entries_of(folder.path()), 1U);
}

TEST(AtomicFile, IsNotCommittedAfterAWriteThatFailed) {
  const TemporaryFolder folder = scratch_folder();
  const std::string target = (folder.path() / "out").string();
  const ChildProcess child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    AtomicFile file = must(AtomicFile::create(target));
    const std::string large(2'000'000, 'x');
    const bool failed = message_of(file.write(as_bytes(large))) ==
                        "cannot write " + target + ": File too large";
    return failed && !file.commit() ? 0 : 1;
  });

  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(entries_of(folder.path()), 0U);
}

TEST(AtomicFile, SurvivesAChangeOfFolder) {
  const TemporaryFolder folder = scratch_folder();
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  AtomicFile file = must(AtomicFile::create("out"));
  fs::current_path(before);

  EXPECT_EQ(message_of(file.commit()), "no error");

  EXPECT_TRUE(fs::exists(folder.path() / "out"));
}

}  // namespace
}  // namespace postflight
