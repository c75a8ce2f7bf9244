#include "checkpoint/zip/end.h"

#include "base/test_files.h"
#include "checkpoint/expect.h"
#include "checkpoint/sample.h"
#include "checkpoint/zip_maker.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ZipEnd end_of(const std::string& file) {
  return must(find_zip_end(as_bytes(file)));
}

std::string end_error_of(const std::string& file) {
  const auto end = find_zip_end(as_bytes(file));
  return end ? "no error" : std::string(end.error().message());
}

std::vector<std::string> end_findings_of(const std::string& file) {
  return lines(end_of(file).findings);
}

TEST(ZipEnd, SaysThatATruncatedArchiveBreaksOff) {
  EXPECT_EQ(end_error_of(sample("ckpt_more/truncated.pt")),
            "the archive is truncated: its directory, which comes last, is not "
            "in these 18003 bytes; the writer was probably killed or the copy "
            "interrupted");
  EXPECT_EQ(end_error_of("hello"), "no zip archive ends in these 5 bytes");
}

// The second of two equal archives says that its 64-bit end record lies where
// the first one's does.
TEST(ZipEnd, DoesNotMistakeAnotherArchivesEndRecord) {
  const std::string one = sample("ckpt/basic.pt");
  const std::string file = one + one;
  EXPECT_EQ(end_of(file).archive.offset, one.size());
}

TEST(ZipEnd, ReadsAComment) {
  const std::string file =
      make_zip({{.name = "a/x", .contents = "hello"}}, {.comment = "bye"});
  EXPECT_EQ(end_of(file).archive, (Extent{0, file.size()}));
  EXPECT_THAT(end_findings_of(file), IsEmpty());
  EXPECT_THAT(end_findings_of(make_zip({}, {.comment_size = 7})),
              ElementsAre("warning zip_comment_cut [byte 0]: the archive's "
                          "comment should have 7 bytes, 0 are there"));
}

TEST(ZipEnd, NamesEndRecordsThatDisagree) {
  const std::vector<MadeZipEntry> entries = {{.name = "a/x"}, {.name = "a/y"}};
  EXPECT_THAT(
      end_findings_of(make_zip(entries, {.zip64 = true, .narrow_entries = 1})),
      ElementsAre("error zip_end_mismatch [byte 240]: the archive's two end "
                  "records disagree; readers may see different entries; the "
                  "64-bit one was used"));
  EXPECT_THAT(
      end_findings_of(make_zip(entries, {.zip64 = true, .zip64_offset = 7})),
      ElementsAre(
          "error zip_end_mismatch [byte 164]: the 64-bit end record should be "
          "at offset 7 and lies at 164; readers may see different entries"));
  std::string file = make_zip(entries);
  file.insert(file.size() - 22, "PK\6\7" + std::string(16, '\0'));
  file[file.size() - 10] = 2 * 49 + 20;  // the directory's size
  EXPECT_THAT(
      end_findings_of(file),
      ElementsAre("error zip_end_mismatch [byte 164]: a locator refers to a "
                  "64-bit end record that is not beside it; readers may see "
                  "different entries; it was ignored"));
}

TEST(ZipEnd, DoesWithoutADamaged64BitEndRecord) {
  const std::string whole = sample("ckpt/basic.pt");
  for (const std::size_t at : {98U, 94U, 42U}) {  // signatures, a size
    std::string file = whole;
    file[file.size() - at] ^= 0x20;
    EXPECT_EQ(end_of(file).entries, 8);
    EXPECT_EQ(end_of(file).archive.offset, 0);
    EXPECT_THAT(end_findings_of(file),
                ElementsAre("error zip_end_mismatch [byte 2163]: the archive's "
                            "64-bit end record is damaged; the 32-bit one was "
                            "used"));
  }
}

TEST(ZipEnd, RefusesImpossibleDirectories) {
  EXPECT_EQ(end_error_of(make_zip({{.name = "a/x"}},
                                  {.zip64 = true, .entries = 1ULL << 32})),
            "the directory should have 4294967296 entries in 49 bytes, but "
            "each takes at least 46");
  EXPECT_EQ(end_error_of(make_zip({{.name = "a/x"}}, {.directory_size = 1000})),
            "the directory should be at offset 33 with 1000 bytes, but "
            "only 82 bytes come before its end; the front of the archive is "
            "missing");
  for (const std::uint64_t offset : {34ULL, ~0ULL})
    EXPECT_EQ(
        end_error_of(make_zip({{.name = "a/x"}},
                              {.zip64 = true, .directory_offset = offset})),
        fmt::format("the directory should be at offset {} with 49 bytes, "
                    "but only 82 bytes come before its end; the front of the "
                    "archive is missing",
                    offset));
  EXPECT_EQ(end_error_of(make_zip({{.name = "a/x"}}, {.directory_size = 48})),
            "the directory should begin at byte 34, but there is no entry");
  EXPECT_EQ(
      end_error_of(make_zip({{.name = "a/x"}}, {.directory_size = ~0ULL})),
      "the end record at byte 82 refers to a 64-bit end record, which is not "
      "there");
  EXPECT_EQ(end_error_of(make_zip({}, {.disk = 2})),
            "the archive is a part of one that spans several disks; join the "
            "parts first");
}

}  // namespace
}  // namespace postflight
