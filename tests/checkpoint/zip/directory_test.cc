#include "checkpoint/zip/directory.h"

#include "base/test_files.h"
#include "checkpoint/expect.h"
#include "checkpoint/sample.h"
#include "checkpoint/torch/archives.h"
#include "checkpoint/zip_maker.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Reads a directory that must be readable; `file` must outlive it.
ZipDirectory directory_of(const std::string& file, const Limits& limits = {}) {
  return must(ZipDirectory::read(as_bytes(file), limits));
}

std::string error_of(const std::string& file, const Limits& limits = {}) {
  const auto directory = ZipDirectory::read(as_bytes(file), limits);
  return directory ? "no error" : std::string(directory.error().message());
}

// What comes of reading the first entry of an archive.
std::string contents_of(const std::string& file, const Limits& limits = {}) {
  const ZipDirectory directory = directory_of(file, limits);
  const auto contents = directory.contents(directory.entries().front());
  return contents ? std::string(as_text(contents->bytes()))
                  : message_of(contents);
}

std::vector<std::string> findings_of(const std::string& file) {
  return lines(directory_of(file).findings());
}

TEST(ZipDirectory, FindsBytesByAHeaderReadElsewhere) {
  const std::string file = sample("ckpt/basic.pt");
  const ZipDirectory directory = directory_of(file);
  for (const ZipEntry& entry : directory.entries()) {
    std::string header =
        file.substr(directory.header_at(entry), 30 + entry.name.size());
    const auto found = directory.extent_by(entry, as_bytes(header));
    ASSERT_TRUE(found) << entry.name;
    EXPECT_EQ(found->offset, must(directory.extent(entry)).offset);
    EXPECT_EQ(found->size, entry.compressed_size);
    for (std::size_t size = 0; size < header.size(); ++size)
      EXPECT_FALSE(directory.extent_by(entry, as_bytes(header).first(size)));
    // Its signature, how long its name is, and the name.
    for (std::size_t at = 0; at < header.size(); ++at)
      if (at < 4 || at == 26 || at == 27 || at >= 30) {
        header[at] = static_cast<char>(header[at] ^ 1);
        EXPECT_FALSE(directory.extent_by(entry, as_bytes(header))) << at;
        header[at] = static_cast<char>(header[at] ^ 1);
      }
  }
  // The last one's bytes would reach beyond the end.
  const ZipEntry& last = directory.entries().back();
  std::string header =
      file.substr(directory.header_at(last), 30 + last.name.size());
  header[29] = '\x7f';
  EXPECT_FALSE(directory.extent_by(last, as_bytes(header)));
}

TEST(ZipDirectory, ReadsATorchArchive) {
  const std::string file = sample("ckpt/basic.pt");
  const ZipDirectory directory = directory_of(file);
  std::vector<std::string> lines;
  for (const ZipEntry& entry : directory.entries())
    lines.push_back(fmt::format("{} {} {:08x} {}", entry.name, entry.size,
                                entry.crc32, entry.header_offset));
  // As Python's zipfile lists it.
  EXPECT_THAT(lines, ElementsAre("basic/data.pkl 368 d4190156 0",
                                 "basic/.format_version 1 83dcefb7 448",
                                 "basic/.storage_alignment 2 e971773f 529",
                                 "basic/byteorder 6 19e33d85 658",
                                 "basic/data/0 340 6a2ee6ef 790",
                                 "basic/data/1 20 690bdf58 1252",
                                 "basic/version 2 55679ed1 1380",
                                 "basic/.data/serialization_id 40 f9d97d4e "
                                 "1490"));
  EXPECT_EQ(directory.root(), "basic");
  EXPECT_EQ(directory.start(), 0);
  EXPECT_EQ(directory.trailing_bytes(), 0);
  EXPECT_EQ(directory.directory(), (Extent{1656, 507}));
  EXPECT_THAT(directory.findings(), IsEmpty());
}

TEST(ZipDirectory, PayloadsOfTorchLieAtMultiplesOf64) {
  const std::string file = sample("ckpt/basic.pt");
  const ZipDirectory directory = directory_of(file);
  for (const ZipEntry& entry : directory.entries())
    EXPECT_EQ(must(directory.extent(entry)).offset % 64, 0) << entry.name;
}

// The CRCs in the directory were computed by the writer: a payload that is
// off by a byte, or inflated wrongly, does not match its own.
TEST(ZipDirectory, ContentsOfAllSamplesMatchTheirCrc) {
  int archives = 0, good = 0, absent = 0, deflated = 0;
  for (const std::string& name : zip_samples()) {
    // Those of ckpt_made are made wrong, and become more.
    if (name == "ckpt_more/truncated.pt" || name.starts_with("ckpt_made/"))
      continue;
    const std::string file = sample(name);
    for (const Extent& extent : find_archives(as_bytes(file), {}).extents) {
      const Bytes archive = as_bytes(file).subspan(extent.offset, extent.size);
      const ZipDirectory directory = must(ZipDirectory::read(archive, {}));
      ++archives;
      for (const ZipEntry& entry : directory.entries()) {
        const auto contents = directory.contents(entry);
        ASSERT_TRUE(contents) << name << ": " << message_of(contents);
        ASSERT_EQ(contents->bytes().size(), entry.size);
        const auto state = check_crc(entry, contents->bytes());
        ASSERT_TRUE(state) << name << ": " << message_of(state);
        ++(*state == CrcState::kGood ? good : absent);
        deflated += entry.method == 8;
      }
    }
  }
  // Python's zipfile counts the same.
  EXPECT_EQ(archives, 223);
  EXPECT_EQ(good, 2146);
  EXPECT_EQ(absent, 10);
  EXPECT_EQ(deflated, 12);
}

TEST(ZipDirectory, InflatesToWhatWasStored) {
  const std::string stored_file = sample("ckpt_more/rezipped_stored.pt");
  const std::string deflated_file = sample("ckpt_more/rezipped_deflated.pt");
  const ZipDirectory stored = directory_of(stored_file);
  const ZipDirectory deflated = directory_of(deflated_file);
  ASSERT_EQ(stored.entries().size(), deflated.entries().size());
  for (const ZipEntry& entry : stored.entries()) {
    const ZipEntry* other = deflated.find(entry.name);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(as_text(must(deflated.contents(*other)).bytes()),
              as_text(must(stored.contents(entry)).bytes()));
  }
}

TEST(ZipDirectory, StoredContentsAreAView) {
  const std::string file = make_zip({{.name = "a/x", .contents = "hello"}});
  const ZipDirectory directory = directory_of(file);
  const Contents contents =
      must(directory.contents(directory.entries().front()));
  EXPECT_EQ(as_text(contents.bytes()).data(), file.data() + 33);
}

TEST(ZipDirectory, NoticesAChangedPayload) {
  std::string file = sample("ckpt_more/whole.pt");
  file[14000] ^= 0x10;
  const ZipDirectory directory = directory_of(file);
  const ZipEntry& entry = *directory.find("whole/data/3");
  const Contents contents = must(directory.contents(entry));
  EXPECT_EQ(message_of(check_crc(entry, contents.bytes())),
            "entry 'whole/data/3': CRC mismatch: its CRC-32 is 8dae7ac5, but "
            "was 9d630d3b when it was written; its bytes have changed");
}

TEST(ZipDirectory, RemembersTrailingBytes) {
  const std::string file = sample("ckpt_more/trailing.pt");
  EXPECT_EQ(directory_of(file).trailing_bytes(), 100);
  EXPECT_THAT(findings_of(file),
              ElementsAre("warning zip_trailing_bytes [byte 1748]: 100 bytes "
                          "follow the end of the archive"));
}

TEST(ZipDirectory, ReadsAnArchiveBehindOtherBytes) {
  for (const bool zip64 : {false, true}) {
    const std::string file =
        "#!/bin/sh\n" +
        make_zip({{.name = "a/x", .contents = "hello"}}, {.zip64 = zip64});
    EXPECT_EQ(directory_of(file).start(), 10);
    EXPECT_EQ(contents_of(file), "hello");
    EXPECT_THAT(findings_of(file),
                ElementsAre("warning zip_prefix [byte 0]: 10 bytes come before "
                            "the archive; torch refuses such a file"));
  }
}

TEST(ZipDirectory, ReadsSizesOf64Bits) {
  const std::string file = make_zip(
      {{.name = "a/x", .contents = "hello", .zip64 = true}}, {.zip64 = true});
  EXPECT_EQ(contents_of(file), "hello");
  EXPECT_THAT(findings_of(file), IsEmpty());
}

TEST(ZipDirectory, RefusesAShortBlockOf64BitSizes) {
  const std::string block("\1\0\x8\0\0\0\0\0\0\0\0\0", 12);
  EXPECT_EQ(
      error_of(make_zip({{.name = "a/x", .zip64 = true, .extra = block}})),
      "directory entry 1 of 1 at byte 33: offset 8: need 8 bytes, 0 "
      "left");
}

TEST(ZipDirectory, TakesOffsetsFromTheLocalHeader) {
  EXPECT_EQ(contents_of(make_zip({{.name = "a/x",
                                   .contents = "hello",
                                   .local_extra = "FB\2 ZZ",
                                   .after = "PK\7\b"}})),
            "hello");
}

TEST(ZipDirectory, RootIsTheFirstFolder) {
  const auto root = [](const std::vector<MadeZipEntry>& entries) {
    const std::string file = make_zip(entries);
    const auto found = directory_of(file).root();
    return found ? std::string(*found) : "none";
  };
  EXPECT_EQ(root({{.name = "my model/data.pkl"}, {.name = "b/c"}}), "my model");
  EXPECT_EQ(root({{.name = "data.pkl"}}), "none");
  EXPECT_EQ(root({}), "none");
}

TEST(ZipDirectory, FindsNames) {
  const std::string file = make_zip({{.name = "a/Data"},
                                     {.name = "a/data"},
                                     {.name = "a/VERSION"},
                                     {.name = "a/data/0"}});
  const ZipDirectory directory = directory_of(file);
  const ZipEntry* entries = directory.entries().data();
  EXPECT_EQ(directory.find("a/Data"), entries + 0);
  EXPECT_EQ(directory.find("a/data"), entries + 1);
  EXPECT_EQ(directory.find("a/data/0"), entries + 3);
  EXPECT_EQ(directory.find("a/version"), nullptr);
  EXPECT_EQ(directory.find("a/dat"), nullptr);
  EXPECT_EQ(directory.find(""), nullptr);
  EXPECT_EQ(directory.find_ignoring_case("A/version"), entries + 2);
  EXPECT_EQ(directory.find_ignoring_case("a/Data"), entries + 0);
  EXPECT_EQ(directory.find_ignoring_case("a/data"), entries + 1);
  EXPECT_EQ(directory.find_ignoring_case("a/versio"), nullptr);
}

TEST(ZipDirectory, NamesDuplicatesAndFindsTheLast) {
  const std::string file = make_zip({{.name = "a/x", .contents = "one"},
                                     {.name = "a/y", .contents = "two"},
                                     {.name = "a/x", .contents = "three"},
                                     {.name = "a/x", .contents = "four"}});
  const ZipDirectory directory = directory_of(file);
  EXPECT_EQ(directory.find("a/x"), &directory.entries()[3]);
  EXPECT_THAT(findings_of(file),
              ElementsAre("error zip_duplicate_entry [a/x]: entry 'a/x' "
                          "appears in the directory more than once; readers "
                          "may see different contents (and 1 more such)"));
}

TEST(ZipDirectory, NamesEntriesThatOverlap) {
  const std::string file =
      make_zip({{.name = "a/x", .contents = "one", .header_offset = 36},
                {.name = "a/x/", .contents = "two"},
                {.name = "a/z", .contents = "three", .compressed_size = 6}});
  EXPECT_THAT(findings_of(file),
              ElementsAre("error zip_overlap [a/x]: entry 'a/x' reaches into "
                          "the entry after it or the directory (and 1 more "
                          "such)"));
}

TEST(ZipDirectory, NamesEntriesBeyondTheStatedCount) {
  const std::string file =
      make_zip({{.name = "a/x"}, {.name = "a/y"}}, {.entries = 1});
  EXPECT_THAT(findings_of(file),
              ElementsAre("error zip_hidden_entries [byte 115]: 49 bytes of "
                          "the directory come after the 1 entries that it "
                          "states; some readers see more entries there"));
}

TEST(ZipDirectory, RefusesATamperedLocalHeader) {
  EXPECT_EQ(contents_of(make_zip({{.name = "a/data.pkl",
                                   .contents = "x",
                                   .local_name = "a/nice.pkl"}})),
            "entry 'a/data.pkl': its own header calls it 'a/nice.pkl'; the "
            "archive was damaged or tampered with");
  EXPECT_EQ(contents_of(make_zip({{.name = "a/x", .header_offset = 5}})),
            "entry 'a/x': its header should lie at offset 5, but there is "
            "none");
  for (const std::uint64_t offset : {1000ULL, ~0ULL, ~0ULL - 29})
    EXPECT_EQ(
        contents_of(make_zip(
            {{.name = "a/x", .zip64 = true, .header_offset = offset}})),
        fmt::format("entry 'a/x': its header should lie at offset {}, beyond "
                    "the archive's end",
                    offset));
  for (const std::uint64_t size : {1000ULL, ~0ULL})
    EXPECT_EQ(
        contents_of(make_zip(
            {{.name = "a/x", .zip64 = true, .compressed_size = size}})),
        fmt::format("entry 'a/x': its {} bytes reach beyond the archive's end",
                    size));
}

TEST(ZipDirectory, SaysWhatItCannotDecode) {
  EXPECT_EQ(contents_of(make_zip({{.name = "a/x", .flags = 1}})),
            "entry 'a/x': it is encrypted; decrypt the archive first");
  EXPECT_EQ(contents_of(make_zip({{.name = "a/x", .method = 93}})),
            "entry 'a/x': it is compressed by method 93, and only 0 (stored) "
            "and 8 (deflated) are read; pack the archive again");
}

TEST(ZipDirectory, RefusesContentsThatAreNotAsStated) {
  const std::string zeros(100'000, '\0');
  const auto inflated = [&](MadeZipEntry entry, const Limits& limits = {}) {
    entry.name = "a/x";
    entry.deflated = true;
    entry.contents = zeros;
    return contents_of(make_zip({entry}), limits);
  };
  EXPECT_EQ(inflated({}), zeros);
  EXPECT_EQ(inflated({.size = 99'998}),
            "entry 'a/x': it inflates to more than the 99998 bytes stated");
  EXPECT_EQ(inflated({.size = 0}),
            "entry 'a/x': it inflates to more than the 0 bytes stated");
  EXPECT_EQ(inflated({.size = 100'001}),
            "entry 'a/x': it inflates to 100000 bytes, not the 100001 stated");
  EXPECT_EQ(
      inflated({.zip64 = true, .size = ~0ULL}, {.max_inflated_bytes = ~0ULL}),
      "entry 'a/x': its 114 bytes cannot inflate to the 18446744073709551615 "
      "stated");
  EXPECT_EQ(inflated({}, {.max_inflated_bytes = 99'999}),
            "entry 'a/x': it inflates to 100000 bytes, more than the 99999 "
            "allowed (max_inflated_bytes)");
  EXPECT_EQ(inflated({.compressed_size = 50}),
            "entry 'a/x': its 50 bytes cannot inflate to the 100000 stated");
  EXPECT_EQ(inflated({.compressed_size = 110}),
            "entry 'a/x': its deflated data is truncated: it inflates to "
            "97784 bytes of 100000");
  EXPECT_EQ(inflated({.after = "more", .compressed_size = 118}),
            "entry 'a/x': 4 bytes follow the end of its deflated data");
  EXPECT_EQ(contents_of(make_zip(
                {{.name = "a/x", .contents = "\7", .method = 8, .size = 5}})),
            "entry 'a/x': it cannot be inflated beyond byte 0 of 5: invalid "
            "block type");
  EXPECT_EQ(contents_of(make_zip({{.name = "a/x", .size = 5}})),
            "entry 'a/x': it should have 5 bytes, but 0 are stored");
}

TEST(ZipDirectory, RefusesTooManyEntries) {
  EXPECT_EQ(error_of(make_zip({{.name = "a"}, {.name = "b"}}),
                     {.max_archive_entries = 1}),
            "the archive has 2 entries, more than the 1 allowed "
            "(max_archive_entries)");
}

TEST(ZipDirectory, EveryPrefixFailsCleanly) {
  for (const char* name : {"ckpt/basic.pt", "ckpt_more/rezipped_deflated.pt"}) {
    const std::string file = sample(name);
    for (std::size_t size = 0; size < file.size(); ++size) {
      const std::vector<char> prefix(file.data(), file.data() + size);
      const auto directory =
          ZipDirectory::read(std::as_bytes(std::span(prefix)), {});
      ASSERT_FALSE(directory) << size;
      ASSERT_EQ(directory.error().kind(), ErrorKind::kCorrupt);
    }
  }
}

TEST(ZipDirectory, EveryFlippedBitStaysWithinLimits) {
  const Limits limits{.max_inflated_bytes = 4096, .max_archive_entries = 20};
  for (const char* name : {"ckpt/basic.pt", "ckpt_more/rezipped_deflated.pt"}) {
    const std::string whole = sample(name);
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string file = whole;
      file[bit / 8] = static_cast<char>(file[bit / 8] ^ 1 << bit % 8);
      const auto directory = ZipDirectory::read(as_bytes(file), limits);
      if (!directory)
        continue;
      ASSERT_LE(directory->entries().size(), 20);
      for (const ZipEntry& entry : directory->entries()) {
        const auto contents = directory->contents(entry);
        if (contents) {
          ASSERT_EQ(contents->bytes().size(), entry.size);
          ASSERT_LE(contents->inflated.size(), 4096);
        }
      }
    }
  }
}

RC_GTEST_PROP(ZipDirectory, ReadsBackWhatWasMade,
              (const std::vector<std::pair<std::string, std::string>>& made,
               bool deflated, bool zip64, const std::string& before)) {
  std::vector<MadeZipEntry> entries;
  for (const auto& [name, contents] : made)
    entries.push_back({.name = name,
                       .contents = contents,
                       .deflated = deflated,
                       .zip64 = zip64});
  const std::string file = before + make_zip(entries, {.zip64 = zip64});
  const ZipDirectory directory = directory_of(file);
  RC_ASSERT(directory.start() == before.size());
  RC_ASSERT(directory.entries().size() == made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    const ZipEntry& entry = directory.entries()[i];
    RC_ASSERT(entry.name == made[i].first);
    const Contents contents = must(directory.contents(entry));
    RC_ASSERT(as_text(contents.bytes()) == made[i].second);
    RC_ASSERT(directory.find(entry.name)->name == entry.name);
  }
}

}  // namespace
}  // namespace postflight
