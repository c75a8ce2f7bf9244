#include "stream/tar/reader.h"

#include "stream/codec/zstd_filter.h"
#include "stream/compressor.h"
#include "stream/cut_source.h"
#include "stream/filter_stream.h"
#include "stream/tar_maker.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string damage_of(const TarListing& listing) {
  return listing.damage ? std::string(listing.damage->message()) : "none";
}

std::vector<std::string> paths(const TarListing& listing) {
  std::vector<std::string> paths;
  for (const TarMember& member : listing.members)
    paths.push_back(member.path);
  return paths;
}

// Reads the members of a source as "path=contents", and how it ended.
Drained walked(Source& source, const Limits& limits = {}) {
  Drained drained;
  TarReader reader(source, limits);
  for (;;) {
    const Result<std::optional<TarMember>> member = reader.next();
    if (!member) {
      drained.error = member.error().message();
      return drained;
    }
    if (!*member)
      return drained;
    drained.bytes += (*member)->path + "=";
    std::byte room[100];
    for (;;) {
      const Result<Taken> taken = reader.read(room);
      if (!taken) {
        drained.error = taken.error().message();
        return drained;
      }
      if (taken->at_end)
        break;
      drained.bytes += as_text(Bytes(room).first(taken->count));
    }
    drained.bytes += ";";
  }
}

std::string two_files() {
  return tar_entry({.path = "a", .contents = "first"}) +
         tar_entry({.path = "b", .contents = std::string(600, 'b')}) +
         tar_end();
}

TEST(TarReader, ListsMembersWithThePlaceOfTheirContents) {
  const std::string archive =
      tar_entry({.path = "dumps/", .type = '5', .size = "00000000777"}) +
      tar_entry({.path = "dumps/rank_0", .contents = "zero"}) +
      tar_entry({.path = "link", .type = '2', .size = "00000000777"}) +
      tar_entry({.path = "empty"}) + tar_entry({.path = "pipe", .type = '6'}) +
      tar_end();
  const TarListing listing = list_tar(as_bytes(archive));
  EXPECT_THAT(listing.members,
              ElementsAre(TarMember{"dumps/", TarKind::kFolder, 512, 0},
                          TarMember{"dumps/rank_0", TarKind::kFile, 1024, 4},
                          TarMember{"link", TarKind::kLink, 2048, 0},
                          TarMember{"empty", TarKind::kFile, 2560, 0},
                          TarMember{"pipe", TarKind::kOther, 3072, 0}));
  EXPECT_EQ(damage_of(listing), "none");
  EXPECT_TRUE(looks_like_tar(as_bytes(archive)));
}

TEST(TarReader, ReadsContentsFromAStreamThatCannotSeek) {
  const std::string archive = two_files();
  CutSource pieces(archive, {7, 600});
  EXPECT_EQ(walked(pieces),
            (Drained{"a=first;b=" + std::string(600, 'b') + ";"}));
}

TEST(TarReader, ReadsACompressedArchiveOfRealDumps) {
  const std::string zero = test_data("flight/nccl_healthy/nccl_trace_rank_0");
  const std::string one = test_data("flight/nccl_healthy/nccl_trace_rank_1");
  const std::string archive =
      zstd_compressed(tar_entry({.path = "0", .contents = zero}) +
                      tar_entry({.path = "1", .contents = one}) + tar_end());
  MemorySource file(as_bytes(archive));
  Result<std::unique_ptr<Filter>> decoder = make_zstd_decoder();
  ASSERT_TRUE(decoder);
  FilterSource source(file, *std::move(decoder));
  EXPECT_EQ(walked(source), (Drained{"0=" + zero + ";1=" + one + ";"}));
}

TEST(TarReader, SkipsWhatIsNotAskedFor) {
  const std::string archive = two_files();
  CutSource pieces(archive, {100});
  TarReader reader(pieces);
  EXPECT_EQ((*reader.next())->path, "a");
  EXPECT_EQ((*reader.next())->path, "b");
  EXPECT_FALSE(*reader.next());
  EXPECT_FALSE(*reader.next());
}

TEST(TarReader, ReadsLongNames) {
  const std::string path = std::string(150, 'p') + "/file";
  const std::string archive =
      tar_entry({.path = "file", .prefix = std::string(150, 'p')}) +
      tar_entry(
          {.path = "././@LongLink", .contents = path + '\0', .type = 'L'}) +
      tar_entry({.path = "cut", .gnu = true}) +
      tar_entry({.path = "././@LongLink", .contents = "target", .type = 'K'}) +
      tar_entry(
          {.path = "x",
           .contents = pax_record("mtime", "1.5") + pax_record("path", path),
           .type = 'x'}) +
      tar_entry({.path = "cut"}) +
      tar_entry({.path = "old", .prefix = "times", .gnu = true}) + tar_end();
  const TarListing listing = list_tar(as_bytes(archive));
  EXPECT_THAT(paths(listing), ElementsAre(path, path, path, "old"));
  EXPECT_EQ(damage_of(listing), "none");
}

TEST(TarReader, ReadsSizesOfPaxAndBinaryOnes) {
  const std::string archive =
      tar_entry({.path = "g",
                 .contents = pax_record("comment", "made by us"),
                 .type = 'g'}) +
      tar_entry(
          {.path = "x", .contents = pax_record("size", "4"), .type = 'x'}) +
      tar_entry({.path = "a", .contents = "four", .size = "00000000000"}) +
      tar_entry({.path = "b",
                 .contents = "five!",
                 .size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\5", 12)}) +
      tar_end();
  const TarListing listing = list_tar(as_bytes(archive));
  ASSERT_EQ(damage_of(listing), "none");
  ASSERT_THAT(paths(listing), ElementsAre("a", "b"));
  EXPECT_EQ(archive.substr(listing.members[0].offset, 4), "four");
  EXPECT_EQ(listing.members[0].size, 4u);
  EXPECT_EQ(listing.members[1].size, 5u);
}

TEST(TarReader, RefusesSparseFiles) {
  const std::string good = tar_entry({.path = "good"});
  const TarListing old = list_tar(
      as_bytes(good + tar_entry({.path = "holes", .type = 'S', .gnu = true})));
  EXPECT_THAT(paths(old), ElementsAre("good"));
  EXPECT_EQ(damage_of(old),
            "holes is stored as a sparse file; unpack the archive with tar "
            "first");
  EXPECT_EQ(old.damage->kind(), ErrorKind::kUnsupported);
  const TarListing pax = list_tar(
      as_bytes(tar_entry({.path = "x",
                          .contents = pax_record("GNU.sparse.major", "1"),
                          .type = 'x'}) +
               tar_entry({.path = "holes"})));
  EXPECT_EQ(damage_of(pax), damage_of(old));
}

TEST(TarReader, SaysThatItBeganOnAnotherVolume) {
  EXPECT_EQ(damage_of(list_tar(as_bytes(
                tar_entry({.path = "half", .type = 'M', .gnu = true})))),
            "half began on another volume; join the volumes with tar first");
}

TEST(TarReader, KeepsTheMembersBeforeTheDamage) {
  std::string archive = two_files();
  archive[1024] ^= 1;
  const TarListing listing = list_tar(as_bytes(archive));
  EXPECT_THAT(paths(listing), ElementsAre("a"));
  EXPECT_EQ(damage_of(listing),
            "the tar archive is damaged at byte 1024: its header has a wrong "
            "checksum");
}

TEST(TarReader, ShowsTheMemberThatIsCut) {
  const std::string archive = two_files().substr(0, 1024 + 512 + 100);
  const TarListing listing = list_tar(as_bytes(archive));
  EXPECT_THAT(paths(listing), ElementsAre("a"));
  EXPECT_EQ(listing.cut, (TarMember{"b", TarKind::kFile, 1536, 100}));
  const std::string message =
      "the tar archive is truncated inside b, which should have 600 bytes; it "
      "is probably truncated";
  EXPECT_EQ(damage_of(listing), message);
  CutSource pieces(archive, {50});
  EXPECT_EQ(walked(pieces),
            (Drained{"a=first;b=" + std::string(100, 'b'), message}));
}

TEST(TarReader, SaysThatTheEndIsMissing) {
  const TarListing listing =
      list_tar(as_bytes(tar_entry({.path = "a", .contents = "first"})));
  EXPECT_THAT(paths(listing), ElementsAre("a"));
  EXPECT_EQ(damage_of(listing),
            "the tar archive ends at byte 1024 without its end mark; it is "
            "probably truncated");
}

TEST(TarReader, RefusesNamesThatCostTooMuch) {
  const TarListing listing = list_tar(
      as_bytes(tar_entry({.path = "L", .type = 'L', .size = "77777777777"})));
  EXPECT_EQ(damage_of(listing),
            "a name in the tar archive takes 8589934591 bytes, more than the "
            "1048576 allowed");
  EXPECT_EQ(
      damage_of(list_tar(as_bytes(two_files()), {.max_archive_entries = 1})),
      "the tar archive has more than 1 members");
}

TEST(TarReader, ChecksEveryNumber) {
  const auto damage = [](const TarEntry& entry) {
    return damage_of(list_tar(as_bytes(tar_entry(entry) + tar_end())));
  };
  const std::string no_size =
      "the tar archive is damaged at byte 0: its header has no valid size";
  EXPECT_EQ(damage({.path = "a", .size = "0000000008"}), no_size);
  EXPECT_EQ(damage({.path = "a", .size = std::string(12, '\xff')}), no_size);
  EXPECT_EQ(damage({.path = "a", .size = '\x80' + std::string(11, '\x01')}),
            no_size);
  EXPECT_EQ(damage({.path = "x", .contents = "5 a=\n", .type = 'x'}), "none");
  for (const char* bad : {"6 a=\n", "4 a=\n", "99 a=\n", "a=\n", "2 a=\n",
                          "99999999999999999999 a=\n"})
    EXPECT_EQ(damage({.path = "x", .contents = bad, .type = 'x'}),
              "a pax record has a wrong length")
        << bad;
  EXPECT_EQ(damage({.path = "x", .contents = "4 a\n", .type = 'x'}),
            "a pax record has no value");
  EXPECT_EQ(
      damage({.path = "x", .contents = pax_record("size", "-1"), .type = 'x'}),
      "a pax record has an invalid size: -1");
  EXPECT_FALSE(looks_like_tar(as_bytes(std::string(512, '\0'))));
}

TEST(TarReader, EveryPrefixIsCutOrLacksItsEnd) {
  const std::string archive = two_files();
  // One block of zeros is enough of an end mark.
  for (std::size_t size = 0; size < archive.size() - 512; ++size) {
    const std::string prefix = archive.substr(0, size);
    EXPECT_NE(damage_of(list_tar(as_bytes(prefix))), "none") << size;
    CutSource pieces(prefix, {64});
    EXPECT_NE(walked(pieces).error, "") << size;
  }
}

TEST(TarReader, AFlippedByteOfAHeaderIsFound) {
  const std::string archive = two_files();
  for (std::size_t at = 0; at < 512; ++at) {
    std::string flipped = archive;
    flipped[at] = static_cast<char>(~flipped[at]);
    // The end of the checksum's field may hold anything blank; a flip does not
    // make it so.
    EXPECT_NE(damage_of(list_tar(as_bytes(flipped))), "none") << at;
  }
}

}  // namespace
}  // namespace postflight
