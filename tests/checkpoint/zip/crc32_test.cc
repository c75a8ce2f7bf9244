#include "checkpoint/zip/crc32.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

// As the definition has it, a bit at a time.
std::uint32_t by_definition(std::string_view text) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

TEST(Crc32, IsTheOneOfZip) {
  EXPECT_EQ(crc32_of(as_bytes("123456789")), 0xcbf43926U);
  EXPECT_EQ(crc32_of({}), 0U);
}

TEST(Crc32, IsTheSameForEveryLength) {
  std::string text;
  for (int i = 0; i < 1500; ++i) {
    ASSERT_EQ(crc32_of(as_bytes(text)), by_definition(text)) << i;
    text += static_cast<char>(i * i * 7 + i);
  }
}

// Long ones go through eight stretches side by side, in rounds of 128 KiB.
TEST(Crc32, IsTheSameForLongTexts) {
  constexpr std::size_t kRound = 128 << 10;
  std::string text;
  for (std::size_t i = 0; i < 3 * kRound + 700; ++i)
    text += static_cast<char>(i * i * 7 + i / 251);
  for (const std::size_t size :
       {kRound - 1, kRound, kRound + 1, kRound + 130, 2 * kRound - 64,
        2 * kRound, 3 * kRound + 600, 3 * kRound + 700}) {
    const std::string_view part = std::string_view(text).substr(3, size);
    ASSERT_EQ(crc32_of(as_bytes(part)), by_definition(part)) << size;
    ASSERT_EQ(crc32_of(as_bytes(part.substr(100)),
                       crc32_of(as_bytes(part.substr(0, 100)))),
              by_definition(part))
        << size;
  }
}

RC_GTEST_PROP(Crc32, TakesPieces, (const std::string& text)) {
  const std::string longer = text + std::string(700, 'x') + text;
  const auto cut = *rc::gen::inRange<std::size_t>(0, longer.size());
  const Bytes all = as_bytes(longer);
  RC_ASSERT(crc32_of(all.subspan(cut), crc32_of(all.first(cut))) ==
            crc32_of(all));
  RC_ASSERT(crc32_joined(crc32_of(all.first(cut)), crc32_of(all.subspan(cut)),
                         all.size() - cut) == crc32_of(all));
}

}  // namespace
}  // namespace postflight
