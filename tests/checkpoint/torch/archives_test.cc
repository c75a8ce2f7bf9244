#include "checkpoint/torch/archives.h"

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

Archives archives_of(std::string_view file, const Limits& limits = {}) {
  return find_archives(as_bytes(file), limits);
}

TEST(Archives, AFileOfTorchIsOne) {
  const std::string file = sample("ckpt/basic.pt");
  const Archives found = archives_of(file);
  EXPECT_THAT(found.extents, ElementsAre(Extent{0, file.size()}));
  EXPECT_THAT(found.findings, IsEmpty());
}

// Offsets and sizes as the checkpoint's .metadata records them.
TEST(Archives, ADataFileOfADistributedCheckpointIsSeveral) {
  const Archives found = archives_of(sample("dcp_plain/__3_0.distcp"));
  EXPECT_THAT(found.extents, ElementsAre(Extent{0, 1261}, Extent{1261, 1577},
                                         Extent{2838, 1577}, Extent{4415, 1577},
                                         Extent{5992, 1641}));
  EXPECT_THAT(found.findings, IsEmpty());
}

TEST(Archives, SamplesAreCoveredWithoutGaps) {
  for (const std::string& name : zip_samples()) {
    if (name == "ckpt_more/truncated.pt" || name == "ckpt_more/trailing.pt")
      continue;
    const std::string file = sample(name);
    const Archives found = archives_of(file);
    EXPECT_THAT(found.findings, IsEmpty()) << name;
    std::uint64_t next = 0;
    for (const Extent& extent : found.extents) {
      EXPECT_EQ(extent.offset, next) << name;
      EXPECT_EQ(file.substr(extent.offset, 4), "PK\3\4") << name;
      next = extent.end();
    }
    EXPECT_EQ(next, file.size()) << name;
  }
}

TEST(Archives, SaysWhereNothingCouldBeRecognised) {
  const std::string archive = make_zip({{.name = "a/x"}});
  const Archives found = archives_of("not a zip" + archive);
  EXPECT_THAT(found.extents, ElementsAre(Extent{9, archive.size()}));
  EXPECT_THAT(
      lines(found.findings),
      ElementsAre("error unrecognised_bytes [byte 0]: bytes 0 to 9 are not an "
                  "archive: no zip archive ends in these 9 bytes"));
}

TEST(Archives, SaysWhenThereIsNone) {
  const Archives found = archives_of("");
  EXPECT_THAT(found.extents, IsEmpty());
  EXPECT_THAT(
      lines(found.findings),
      ElementsAre("error unrecognised_bytes [byte 0]: bytes 0 to 0 are not an "
                  "archive: no zip archive ends in these 0 bytes"));
}

TEST(Archives, SaysWhereTheLastOneBreaksOff) {
  const std::string one = make_zip({{.name = "a/x", .contents = "hello"}});
  const std::string file = one + one.substr(0, 60);
  const Archives found = archives_of(file);
  EXPECT_THAT(found.extents, ElementsAre(Extent{0, one.size()}));
  EXPECT_THAT(lines(found.findings),
              ElementsAre("error archive_cut [byte 109]: an archive begins at "
                          "byte 109 and breaks off at byte 169; the writer was "
                          "probably killed or the copy interrupted"));
}

TEST(Archives, SaysWhatLiesBetween) {
  const std::string one = make_zip({});
  const Archives found = archives_of(one + "12345" + one + "6");
  EXPECT_THAT(found.extents, ElementsAre(Extent{0, 22}, Extent{27, 22}));
  EXPECT_THAT(lines(found.findings),
              ElementsAre("warning zip_trailing_bytes [byte 22]: bytes 22 to "
                          "27 follow the end of an archive",
                          "warning zip_trailing_bytes [byte 49]: bytes 49 to "
                          "50 follow the end of an archive"));
}

TEST(Archives, StopsAtTheLimit) {
  const std::string one = make_zip({});
  const Archives found =
      archives_of(one + one + one, {.max_archive_entries = 2});
  EXPECT_THAT(found.extents, ElementsAre(Extent{22, 22}, Extent{44, 22}));
  EXPECT_THAT(
      lines(found.findings),
      ElementsAre("error too_many_archives [byte 0]: the file has more than "
                  "the 2 archives allowed "
                  "(max_archive_entries); bytes 0 to 22 were not examined"));
}

// The end record that is found may be any of them, but only one is tried at
// each step, and each step leaves less.
TEST(Archives, EndRecordsWithoutEndCostLittle) {
  std::string file;
  while (file.size() < 200'000)
    file += "PK\5\6";
  const Archives found = archives_of(file);
  EXPECT_THAT(found.extents, IsEmpty());
  EXPECT_EQ(found.findings.size(), 1);

  std::string empties;
  while (empties.size() < 2'000'000)
    empties += make_zip({}) + "x";
  const Archives many = archives_of(empties);
  EXPECT_EQ(many.extents.size(), empties.size() / 23);
  EXPECT_EQ(many.findings.size(), 100);
}

TEST(Archives, EveryPrefixYieldsFewer) {
  const std::string file = sample("dcp_plain/__0_0.distcp");
  ASSERT_EQ(archives_of(file).extents.size(), 3);
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::vector<char> prefix(file.data(), file.data() + size);
    const Archives found = find_archives(std::as_bytes(std::span(prefix)), {});
    const std::size_t whole = size < 1577 ? 0 : size < 3218 ? 1 : 2;
    ASSERT_EQ(found.extents.size(), whole) << size;
    const bool at_border = size == 1577 || size == 3218;
    ASSERT_EQ(found.findings.size(), at_border ? 0 : 1) << size;
  }
}

TEST(Archives, EveryFlippedBitStaysInTheFile) {
  const std::string whole = sample("dcp_plain/__0_0.distcp");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string file = whole;
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ 1 << bit % 8);
    std::uint64_t next = 0;
    for (const Extent& extent : archives_of(file).extents) {
      ASSERT_GE(extent.offset, next);
      ASSERT_GE(extent.size, 22);
      next = extent.end();
    }
    ASSERT_LE(next, file.size());
  }
}

}  // namespace
}  // namespace postflight
