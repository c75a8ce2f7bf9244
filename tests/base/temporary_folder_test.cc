#include "base/temporary_folder.h"

#include "base/child_process.h"
#include "base/test_files.h"

#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

namespace postflight {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, LiesInItsParentAndIsPrivate) {
  const TemporaryFolder parent = scratch_folder();

  const Result<TemporaryFolder> folder = TemporaryFolder::create(parent.path());

  ASSERT_TRUE(folder.has_value());
  EXPECT_EQ(folder->path().parent_path(), parent.path());
  EXPECT_EQ(fs::status(folder->path()).permissions(), fs::perms::owner_all);
}

TEST(TemporaryFolder, GoesWithEverythingInIt) {
  std::optional<TemporaryFolder> folder = scratch_folder();
  const fs::path path = folder->path();
  fs::create_directories(path / "a/b/c");
  write_file(path / "a/b/c/file", "x");

  folder.reset();

  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolder, StaysWhenKept) {
  const TemporaryFolder parent = scratch_folder();
  fs::path path;
  {
    TemporaryFolder folder = must(TemporaryFolder::create(parent.path()));
    path = folder.path();
    folder.keep();
  }
  EXPECT_TRUE(fs::exists(path));
}

TEST(TemporaryFolder, GoesOnceWhenMoved) {
  TemporaryFolder first = scratch_folder();
  const fs::path path = first.path();
  {
    const TemporaryFolder second = std::move(first);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolder, LiesInTmpdir) {
  const TemporaryFolder parent = scratch_folder();
  const ChildProcess child([&] {
    ::setenv("TMPDIR", parent.path().c_str(), 1);
    return scratch_folder().path().parent_path() == parent.path() ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(TemporaryFolder, SaysWhatToDoWhenItCanNotBeMade) {
  EXPECT_EQ(message_of(TemporaryFolder::create("/no_such_folder")),
            "cannot create a temporary folder in /no_such_folder: No such file "
            "or directory; set TMPDIR to a writable folder");
}

}  // namespace
}  // namespace postflight
