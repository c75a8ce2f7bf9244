#include "base/file.h"

#include "base/test_files.h"

#include <array>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(MappedFile, ShowsTheBytesOfAFile) {
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "dump", "some bytes");

  const Result<MappedFile> file = MappedFile::open(folder.path() / "dump");

  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(as_text(file->bytes()), "some bytes");
}

TEST(MappedFile, KeepsItsBytesWhenMoved) {
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "dump", "some bytes");
  MappedFile first = must(MappedFile::open(folder.path() / "dump"));
  const Bytes bytes = first.bytes();

  MappedFile second = std::move(first);

  EXPECT_EQ(second.bytes().data(), bytes.data());
  EXPECT_EQ(as_text(bytes), "some bytes");
}

TEST(MappedFile, IsEmptyForAnEmptyFile) {
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "dump", "");

  const Result<MappedFile> file = MappedFile::open(folder.path() / "dump");

  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, SaysThatAFileIsMissing) {
  EXPECT_EQ(message_of(MappedFile::open("no_such_folder/x")),
            "cannot open no_such_folder/x: No such file or directory");
}

TEST(MappedFile, RefusesFolders) {
  EXPECT_EQ(message_of(MappedFile::open("/proc")),
            "cannot read /proc: it is a folder; name a file inside it");
}

TEST(MappedFile, RefusesDevices) {
  EXPECT_EQ(message_of(MappedFile::open("/dev/zero")),
            "cannot read /dev/zero: it is a device; name a file or a pipe");
}

TEST(MappedFile, ReadsFilesOfProc) {
  const Result<MappedFile> file = MappedFile::open("/proc/self/status");

  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(as_text(file->bytes()).substr(0, 5), "Name:");
}

// What is written to one end of a pipe, as MappedFile sees the other.
Result<MappedFile> open_pipe_with(const std::string& contents,
                                  const Limits& limits) {
  std::array<int, 2> ends;
  EXPECT_EQ(::pipe(ends.data()), 0);
  std::jthread writer([&] {
    for (std::string_view rest = contents; !rest.empty();) {
      const ssize_t count = ::write(ends[1], rest.data(), rest.size());
      if (count <= 0)
        break;
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
    ::close(ends[1]);
  });
  Result<MappedFile> file =
      MappedFile::open("/proc/self/fd/" + std::to_string(ends[0]), limits);
  // The writer may have more to say than anyone wants to read.
  std::array<char, 4096> rest;
  while (::read(ends[0], rest.data(), rest.size()) > 0) {
  }
  ::close(ends[0]);
  return file;
}

TEST(MappedFile, ReadsAPipeLongerThanItsFirstBuffer) {
  std::string contents;
  for (int line = 0; contents.size() < 5'000'000; ++line)
    contents += std::to_string(line) + "\n";

  const Result<MappedFile> file = open_pipe_with(contents, {});

  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(as_text(file->bytes()) == contents);
}

TEST(MappedFile, ReadsAPipeOfJustTheMostAllowed) {
  const Result<MappedFile> file =
      open_pipe_with("12345", {.max_pipe_bytes = 5});

  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(as_text(file->bytes()), "12345");
}

TEST(MappedFile, RefusesAPipeThatHoldsMoreThanTheLimit) {
  const Result<MappedFile> file =
      open_pipe_with("123456", {.max_pipe_bytes = 5});

  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().kind(), ErrorKind::kRefused);
  const std::string message = message_of(file);
  EXPECT_EQ(message.substr(message.find(" has more")),
            " has more than 5 bytes and cannot be mapped; save it as a "
            "regular file, which is not read into memory");
}

}  // namespace
}  // namespace postflight
