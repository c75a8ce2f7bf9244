#include "base/leftovers.h"

#include "base/child_process.h"
#include "base/test_files.h"

#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace postflight {
namespace {

namespace fs = std::filesystem;

TEST(Leftovers, RemovesFilesAndFoldersThatAreRegistered) {
  const TemporaryFolder scratch = scratch_folder();
  const fs::path file = scratch.path() / "file";
  const fs::path folder = scratch.path() / "folder";
  const fs::path other = scratch.path() / "other";
  // In a child, or it would remove the scratch folder too.
  const ChildProcess child([&] {
    const Leftover first(file);
    const Leftover second(folder);
    write_file(file, "x");
    fs::create_directory(folder);
    write_file(folder / "inside", "x");
    write_file(other, "x");
    Leftovers::remove_all();
    return fs::exists(file) || fs::exists(folder) || !fs::exists(other);
  });

  EXPECT_EQ(child.wait(), 0);
}

TEST(Leftovers, OfAParentAreSafeFromItsChild) {
  const TemporaryFolder scratch = scratch_folder();
  const fs::path path = scratch.path() / "file";
  Leftover leftover(path);
  write_file(path, "x");

  const ChildProcess child([&] {
    Leftovers::remove_all();
    return leftover.remove() ? 0 : 1;
  });

  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(fs::exists(path));
}

TEST(Leftovers, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (int count = 0; count < 1000; ++count)
    names.insert(Leftovers::unique_name());
  EXPECT_EQ(names.size(), 1000U);
}

TEST(Leftover, IsRemovedWithItsHandle) {
  const TemporaryFolder scratch = scratch_folder();
  const fs::path path = scratch.path() / "file";
  {
    const Leftover leftover(path);
    write_file(path, "x");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(Leftover, StaysOnceReleased) {
  const TemporaryFolder scratch = scratch_folder();
  const fs::path path = scratch.path() / "file";
  {
    Leftover leftover(path);
    write_file(path, "x");
    leftover.release();
  }
  EXPECT_TRUE(fs::exists(path));
}

TEST(Leftover, IsRemovedByWhomeverItWasMovedTo) {
  const TemporaryFolder scratch = scratch_folder();
  const fs::path path = scratch.path() / "file";
  {
    Leftover outer(scratch.path() / "never made");
    {
      Leftover inner(path);
      write_file(path, "x");
      outer = std::move(inner);
    }
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(Leftover, DoesNotFollowLinks) {
  const TemporaryFolder scratch = scratch_folder();
  const fs::path precious = scratch.path() / "precious";
  fs::create_directory(precious);
  write_file(precious / "file", "x");
  const fs::path folder = scratch.path() / "folder";
  {
    const Leftover leftover(folder);
    fs::create_directory(folder);
    fs::create_directory_symlink(precious, folder / "link");
  }
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::exists(precious / "file"));
}

TEST(Leftover, MayComeAndGoOnSeveralThreads) {
  const TemporaryFolder scratch = scratch_folder();
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (int count = 0; count < 100; ++count) {
          const fs::path path = scratch.path() / std::to_string(thread);
          const Leftover leftover(path);
          write_file(path, "x");
        }
      });
  }
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

}  // namespace
}  // namespace postflight
