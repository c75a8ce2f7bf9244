#include "stream/file_stream.h"

#include "base/test_files.h"
#include "stream/cut_source.h"

#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(FileSource, ReadsAFileAndSeeks) {
  const TemporaryFolder folder = scratch_folder();
  write_file(folder.path() / "f", "some bytes");
  FileSource source = must(FileSource::open(folder.path() / "f"));
  EXPECT_TRUE(source.seekable());
  EXPECT_EQ(drain(source, 3), (Drained{"some bytes"}));
  EXPECT_EQ(source.tell(), 10u);
  ASSERT_TRUE(source.seek(5));
  EXPECT_EQ(drain(source), (Drained{"bytes"}));
  EXPECT_EQ(message_of(source.seek(~std::uint64_t{0})),
            "cannot seek to byte 18446744073709551615 of " +
                (folder.path() / "f").string());
}

TEST(FileSource, SaysWhyItCannotRead) {
  EXPECT_EQ(message_of(FileSource::open("no_such_folder/x")),
            "cannot open no_such_folder/x: No such file or directory");
  FileSource folder = must(FileSource::open("/proc"));
  EXPECT_EQ(drain(folder), (Drained{"",
                                    "cannot read /proc at byte 0: Is a "
                                    "directory"}));
}

TEST(FileSource, TellsAnEmptyPipeFromAClosedOne) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  FileSource source(Descriptor(ends[0]), "pipe");
  {
    FileSink sink(Descriptor(ends[1]), "pipe");
    std::byte room[8];
    EXPECT_TRUE(source.read(room)->would_block());
    ASSERT_TRUE(sink.write(as_bytes("abc")));
    EXPECT_EQ(source.read(room)->count, 3u);
    EXPECT_TRUE(source.read(room)->would_block());
    EXPECT_EQ(sink.tell(), 3u);
  }
  EXPECT_FALSE(source.seekable());
  EXPECT_EQ(drain(source), (Drained{""}));
}

TEST(FileSink, WaitsForASlowReader) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string text(1 << 20, 'x');  // a pipe holds 64 KiB
  std::string seen;
  FileSource source(Descriptor(ends[0]), "pipe");
  std::jthread reader([&] { seen = drain(source).bytes; });
  {
    FileSink sink(Descriptor(ends[1]), "pipe");
    EXPECT_TRUE(sink.write(as_bytes(text)));
  }
  reader.join();
  EXPECT_EQ(seen, text);
}

TEST(AtomicFileSink, AppearsWhenFinished) {
  const TemporaryFolder folder = scratch_folder();
  AtomicFileSink sink(must(AtomicFile::create(folder.path() / "f")));
  ASSERT_TRUE(sink.write(as_bytes("abc")));
  EXPECT_EQ(sink.tell(), 3u);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "f"));
  ASSERT_TRUE(sink.finish());
  EXPECT_EQ(read_file(folder.path() / "f"), "abc");
}

}  // namespace
}  // namespace postflight
