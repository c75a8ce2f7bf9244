// Small files that hold much more than they should.

#include "checkpoint/torch/pickle_file.h"

#include <string>

#include <gtest/gtest.h>

#include "checkpoint/zip_maker.h"

namespace postflight {
namespace {

using namespace std::string_literals;

Result<PickleFile> read(std::string_view bytes, const Limits& limits = {}) {
  return PickleFile::read(as_bytes(bytes), limits);
}

std::string times(std::size_t count, std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i)
    all += text;
  return all;
}

TEST(PickleFileLimits, StopsAfterTooManyPickles) {
  const std::string bytes = times(30, "N.");
  const Result<PickleFile> file = read(bytes, {.max_pickles = 20});
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pickles.size(), 20u);
  ASSERT_EQ(file->findings.size(), 1u);
  EXPECT_EQ(file->findings[0].kind, "too_many_pickles");
  EXPECT_EQ(file->findings[0].message,
            "the file has more than the 20 pickles allowed (max_pickles); "
            "the rest was not looked at");
  EXPECT_EQ(file->findings[0].where, "byte 40");
  EXPECT_FALSE(file->intact());
}

TEST(PickleFileLimits, CountsPicklesOfAllRecords) {
  const std::string bytes = make_zip({{.name = "a.pkl", .contents = "N.N.N."},
                                      {.name = "b.pkl", .contents = "N.N."},
                                      {.name = "c.pkl", .contents = "N."}});
  const Result<PickleFile> file = read(bytes, {.max_pickles = 4});
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pickles.size(), 4u);
  ASSERT_EQ(file->findings.size(), 1u);
  EXPECT_EQ(file->findings[0].where, "b.pkl, byte 2");
}

TEST(PickleFileLimits, RefusesARecordThatInflatesTooMuch) {
  const std::string bomb = "N." + std::string(40 << 20, '\0');
  const std::string bytes =
      make_zip({{.name = "a.pkl", .contents = bomb, .deflated = true},
                {.name = "b.pkl", .contents = "N.", .deflated = true}});
  const Result<PickleFile> file = read(bytes);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->pickles.size(), 1u);
  EXPECT_EQ(file->pickles[0].where, "b.pkl");
  ASSERT_EQ(file->findings.size(), 1u);
  EXPECT_EQ(file->findings[0].kind, "inflates_too_much");
  EXPECT_EQ(file->findings[0].where, "a.pkl");
  EXPECT_FALSE(file->intact());
}

TEST(PickleFileLimits, RefusesRecordsThatInflateTooMuchTogether) {
  const std::string contents = "N." + std::string(3 << 20, '\0');
  std::vector<MadeZipEntry> entries;
  for (int i = 0; i < 5; ++i)
    entries.push_back({.name = fmt::format("{}.pkl", i),
                       .contents = contents,
                       .deflated = true});
  const std::string bytes = make_zip(entries);
  const Result<PickleFile> file = read(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pickles.size(), 2u);
  EXPECT_FALSE(file->intact());
}

TEST(PickleFileLimits, RefusesValuesOfAnInflatedBomb) {
  const std::string bytes = make_zip({{.name = "a.pkl",
                                       .contents = std::string(7 << 20, ']'),
                                       .deflated = true}});
  const Result<PickleFile> file = read(bytes);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->pickles.size(), 1u);
  EXPECT_TRUE(file->pickles[0].error->ends_with(
      ": its values take more than the 50331648 bytes allowed "
      "(max_value_bytes)"))
      << *file->pickles[0].error;
}

TEST(PickleFileLimits, LooksAtOverlappingRecordsForAWhileOnly) {
  // A hundred entries that all point to the first one's bytes.
  std::vector<MadeZipEntry> entries(100, {.name = "a.pkl",
                                          .contents = "",
                                          .compressed_size = 30'000,
                                          .size = 30'000,
                                          .header_offset = 0});
  entries[0] = {.name = "a.pkl", .contents = times(15'000, "N0")};
  const std::string bytes = make_zip(entries);
  const Result<PickleFile> file = read(bytes);
  ASSERT_TRUE(file);
  EXPECT_LT(file->pickles.size(), 20u);
  bool said = false;
  for (const Finding& finding : file->findings)
    said = said || finding.kind == "entries_overlap";
  EXPECT_TRUE(said);
}

TEST(PickleFileLimits, ShortensNamesOfRecords) {
  const std::string bytes = make_zip(
      {{.name = std::string(60'000, 'x') + ".pkl", .contents = "N.N."}});
  const Result<PickleFile> file = read(bytes);
  ASSERT_TRUE(file);
  ASSERT_EQ(file->pickles.size(), 2u);
  EXPECT_EQ(file->pickles[0].where, std::string(300, 'x') + "…");
}

TEST(PickleFile, KnowsNoOffsetInsideAnInflatedArchive) {
  const std::string inner = make_zip({{.name = "b.pkl", .contents = "N."}});
  const std::string stored = make_zip({{.name = "in.zip", .contents = inner}});
  const Result<PickleFile> with = read(stored);
  ASSERT_TRUE(with);
  EXPECT_EQ(with->pickles[0].where, "in.zip: b.pkl");
  ASSERT_TRUE(with->pickles[0].offset);
  EXPECT_EQ(stored.substr(*with->pickles[0].offset, 2), "N.");

  const std::string deflated =
      make_zip({{.name = "in.zip", .contents = inner, .deflated = true}});
  const Result<PickleFile> without = read(deflated);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->pickles[0].where, "in.zip: b.pkl");
  EXPECT_EQ(without->pickles[0].offset, std::nullopt);
}

TEST(PickleFile, LoadsANestedPickleOnceHoweverOftenItIsLoaded) {
  const std::string bytes =
      "\x80\x03(ctorch.storage\n_load_from_bytes\nq\x01"
      "0C\x04\x80\x02N.\x85q\x02"
      "0" +
      times(100, "h\x01h\x02R") + "l.";
  const Result<PickleFile> file = read(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pickles.size(), 2u);
  EXPECT_FALSE(file->runs_code());
}

TEST(PickleFile, TrustsNoNestedLoadOfUnknownBytes) {
  // One load of bytes that are there, and one of what a call would return.
  const std::string bytes =
      "\x80\x03(ctorch.storage\n_load_from_bytes\nq\x01"
      "C\x04\x80\x02N.\x85Rh\x01"
      "c_codecs\nencode\nX\x01\0\0\0NX\x06\0\0\0latin1\x86R\x85Rl."s;
  const Result<PickleFile> file = read(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->worst(), Trust::kDangerous);
}

TEST(PickleFile, KeepsWhatWouldRunBehindThePickle) {
  const Result<PickleFile> file = read("N.cos\nsystem\n)R\xff");
  ASSERT_TRUE(file);
  ASSERT_EQ(file->pickles.size(), 2u);
  EXPECT_EQ(*file->pickles[1].error, "byte 13: 0xff is not a pickle opcode");
  EXPECT_TRUE(file->runs_code());
}

}  // namespace
}  // namespace postflight
