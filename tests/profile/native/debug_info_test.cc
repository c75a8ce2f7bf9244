#include "profile/native/debug_info.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "profile/native/elf_image.h"

namespace postflight {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A library in which outer() holds middle(), which holds inner().
class InlinedFunctions : public ::testing::Test {
 protected:
  Result<MappedFile> file_ = MappedFile::open(TEST_DATA "/profile/inlined.so");
  std::uint64_t place_ =
      ElfImage::parse(file_->bytes())->symbol("place").value_or(0);

  // "inner inlined.c:2"
  static std::vector<std::string> texts(
      const std::vector<SourcePlace>& places) {
    std::vector<std::string> texts;
    for (const SourcePlace& place : places)
      texts.push_back(fmt::format("{} {}:{}", place.function,
                                  place.file.substr(place.file.rfind('/') + 1),
                                  place.line));
    return texts;
  }
};

TEST_F(InlinedFunctions, AreNamedFromTheInnermostOn) {
  for (const char* const path : {TEST_DATA "/profile/inlined.so",
                                 TEST_DATA "/profile/inlined_compressed.so"}) {
    const auto info = DebugInfo::open(path);
    ASSERT_NE(info, nullptr);
    EXPECT_THAT(texts(info->places_at(place_)),
                ElementsAre("inner inlined.c:2", "middle inlined.c:6",
                            "outer inlined.c:8"));
  }
}

TEST_F(InlinedFunctions, AreNotElsewhere) {
  const auto info = DebugInfo::open(TEST_DATA "/profile/inlined.so");
  ASSERT_NE(info, nullptr);
  const std::uint64_t alone =
      ElfImage::parse(file_->bytes())->symbol("alone").value_or(0);
  EXPECT_THAT(texts(info->places_at(alone)), ElementsAre("alone inlined.c:9"));
  for (const std::uint64_t address :
       {std::uint64_t{0}, place_ + 4096, UINT64_MAX})
    EXPECT_THAT(info->places_at(address), IsEmpty()) << address;
}

TEST_F(InlinedFunctions, AreNotKnownWithoutDebugInformation) {
  EXPECT_EQ(DebugInfo::open(TEST_DATA "/profile/no_such_file"), nullptr);
  EXPECT_THAT(DebugInfo({}).places_at(place_), IsEmpty());
  const auto text = DebugInfo::open(TEST_DATA "/profile/line_tables.txt");
  ASSERT_NE(text, nullptr);
  EXPECT_THAT(text->places_at(place_), IsEmpty());
}

TEST_F(InlinedFunctions, TakeAnyPrefix) {
  const Bytes whole = file_->bytes();
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    std::vector<std::byte> part(whole.begin(),
                                whole.begin() + static_cast<long>(size));
    EXPECT_LE(DebugInfo(part).places_at(place_).size(), 65U);
  }
}

TEST_F(InlinedFunctions, TakeAnyByteAnywhere) {
  const Bytes whole = file_->bytes();
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const auto flip : {std::byte{0xff}, std::byte{1}, std::byte{0x80}}) {
      std::vector<std::byte> bytes(whole.begin(), whole.end());
      bytes[at] ^= flip;
      EXPECT_LE(DebugInfo(bytes).places_at(place_).size(), 65U);
    }
}

}  // namespace
}  // namespace postflight
