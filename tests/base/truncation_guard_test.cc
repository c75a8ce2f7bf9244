#include "base/truncation_guard.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_files.h"

namespace postflight {
namespace {

constexpr std::size_t kPage = 4096;

TEST(TruncationGuard, ReadsZerosWhereAFileWasCutOff) {
  const TruncationGuard guard = must(TruncationGuard::start());
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path path = folder.path() / "dump";
  write_file(path, std::string(4 * kPage, 'x'));
  {
    const MappedFile file = must(MappedFile::open(path));
    EXPECT_FALSE(file.shrank());
    EXPECT_EQ(file.bytes()[3 * kPage], std::byte{'x'});

    std::filesystem::resize_file(path, kPage);

    EXPECT_EQ(file.bytes()[kPage - 1], std::byte{'x'});
    EXPECT_EQ(file.bytes()[2 * kPage], std::byte{0});
    EXPECT_EQ(file.bytes()[4 * kPage - 1], std::byte{0});
    EXPECT_TRUE(file.shrank());
    const auto before = TruncationGuard::shrunk_files();
    EXPECT_EQ(std::ranges::count(before, path), 0);
  }
  const auto after = TruncationGuard::shrunk_files();
  EXPECT_EQ(std::ranges::count(after, path), 1);
}

TEST(TruncationGuard, NoticesAFileThatLostLessThanAPage) {
  const TruncationGuard guard = must(TruncationGuard::start());
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path path = folder.path() / "dump";
  write_file(path, std::string(kPage + 100, 'x'));
  const MappedFile file = must(MappedFile::open(path));
  std::filesystem::resize_file(path, kPage + 50);
  EXPECT_TRUE(file.shrank());
}

TEST(TruncationGuard, IsNotNeededWhereASmallFileIsReadIntoMemory) {
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path path = folder.path() / "dump";
  const std::string content(3 * kPage, 'x');
  write_file(path, content);
  ASSERT_FALSE(TruncationGuard::exists());
  const MappedFile file = must(MappedFile::open(path));
  std::filesystem::resize_file(path, 10);
  EXPECT_EQ(as_text(file.bytes()), content);
  EXPECT_FALSE(file.shrank());
}

TEST(TruncationGuard, SparesThePartOfAMappingThatWasCopied) {
  const TruncationGuard guard = must(TruncationGuard::start());
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path path = folder.path() / "dump";
  write_file(path, std::string(3 * kPage, 'x'));
  const MappedFile file = must(MappedFile::open(path));
  ASSERT_TRUE(file.copy_in(kPage + 1, 1).has_value());
  std::filesystem::resize_file(path, 0);
  const std::string_view text = as_text(file.bytes());
  EXPECT_EQ(text.substr(kPage, kPage), std::string(kPage, 'x'));
  EXPECT_EQ(text[2 * kPage], '\0');
  EXPECT_TRUE(file.shrank());
  EXPECT_FALSE(file.copy_in(0, 1).has_value());
}

TEST(TruncationGuard, LeavesAFileAloneThatGrewOrWasReplaced) {
  const TruncationGuard guard = must(TruncationGuard::start());
  const TemporaryFolder folder = scratch_folder();
  const std::filesystem::path path = folder.path() / "dump";
  write_file(path, std::string(100, 'x'));
  const MappedFile file = must(MappedFile::open(path));
  std::filesystem::resize_file(path, 200);
  EXPECT_FALSE(file.shrank());
  write_file(folder.path() / "other", "y");
  std::filesystem::rename(folder.path() / "other", path);
  EXPECT_FALSE(file.shrank());
}

TEST(TruncationGuard, WatchesAnyNumberOfFilesAndForgetsThem) {
  const TruncationGuard guard = must(TruncationGuard::start());
  const TemporaryFolder folder = scratch_folder();
  std::vector<MappedFile> files;
  for (int i = 0; i < 150; ++i) {
    const std::filesystem::path path = folder.path() / std::to_string(i);
    write_file(path, std::string(2 * kPage, 'x'));
    files.push_back(must(MappedFile::open(path)));
    if (i % 2 == 0)
      std::filesystem::resize_file(path, kPage);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].bytes()[kPage],
              i % 2 == 0 ? std::byte{0} : std::byte{'x'});
    EXPECT_EQ(files[i].shrank(), i % 2 == 0);
  }
  // A place in the table that is used again remembers nothing.
  files.clear();
  write_file(folder.path() / "new", "x");
  EXPECT_FALSE(must(MappedFile::open(folder.path() / "new")).shrank());
}

TEST(TruncationGuardDeathTest, LetsAnyOtherSignalDoWhatItDid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto look = [] {
    ::signal(SIGBUS, SIG_DFL);
    const TruncationGuard guard = must(TruncationGuard::start());
    const TemporaryFolder folder = scratch_folder();
    write_file(folder.path() / "dump", std::string(kPage, 'x'));
    const int number =
        ::open((folder.path() / "dump").c_str(), O_RDONLY | O_CLOEXEC);
    const auto* const address = static_cast<const volatile char*>(
        ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, number, 0));
    std::filesystem::resize_file(folder.path() / "dump", 0);
    const char seen = address[0];
    static_cast<void>(seen);
  };
  EXPECT_EXIT(look(), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace postflight
