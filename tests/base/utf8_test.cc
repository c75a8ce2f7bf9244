#include "base/utf8.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

// Every code point at which the encoding changes its shape.
constexpr char32_t kEdges[] = {0x0,    0x7F,   0x80,   0x7FF,   0x800,
                               0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};

TEST(Utf8, TellsBackEveryCodePoint) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    std::string text;
    append_utf8(code_point, text);
    const bool is_surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    ASSERT_EQ(decode_utf8(text + "x"),
              (Utf8Character{
                  code_point, static_cast<std::uint8_t>(text.size()),
                  is_surrogate ? Utf8Kind::kSurrogate : Utf8Kind::kCharacter}));
    ASSERT_EQ(is_utf8(text), !is_surrogate);
  }
}

TEST(Utf8, TakesACutCharacterByteByByte) {
  for (const char32_t code_point : kEdges) {
    std::string text;
    append_utf8(code_point, text);
    for (std::size_t size = 1; size < text.size(); ++size) {
      const std::string cut = text.substr(0, size);
      EXPECT_EQ(decode_utf8(cut),
                (Utf8Character{static_cast<unsigned char>(cut[0]), 1,
                               Utf8Kind::kInvalid}));
      EXPECT_FALSE(is_utf8(cut));
      EXPECT_FALSE(is_utf8("plain ascii " + cut));
    }
  }
}

TEST(Utf8, AcceptsExactlyTheFormsOfTheStandard) {
  // All texts of two bytes, and all of three that begin with E0 to EF.
  std::string text(2, '\0');
  std::size_t pairs = 0;
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      text[0] = static_cast<char>(first);
      text[1] = static_cast<char>(second);
      pairs += is_utf8(text);
    }
  }
  EXPECT_EQ(pairs, 128U * 128U + 0x800U - 0x80U);

  text.resize(3);
  std::size_t triples = 0;
  for (int first = 0xE0; first < 0xF0; ++first) {
    for (int rest = 0; rest < 0x10000; ++rest) {
      text[0] = static_cast<char>(first);
      text[1] = static_cast<char>(rest >> 8);
      text[2] = static_cast<char>(rest);
      triples += is_utf8(text);
    }
  }
  EXPECT_EQ(triples, 0x10000U - 0x800U - 0x800U);
}

TEST(Utf8, RefusesOverlongAndTooLargeForms) {
  for (const char* text :
       {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xff"}) {
    EXPECT_FALSE(is_utf8(text));
    EXPECT_EQ(decode_utf8(text).size, 1);
    EXPECT_EQ(decode_utf8(text).kind, Utf8Kind::kInvalid);
  }
}

TEST(Utf8, WritesLatin1UpToAnotherCharacter) {
  const auto written = [](std::string_view text) {
    std::string room(text.size(), '?');
    room.resize(write_latin1(text, room.data()));
    return std::pair(room, std::string(text));
  };
  EXPECT_EQ(written(""), std::pair(std::string(), std::string()));
  EXPECT_EQ(written("a\xc2\x80\xc3\xbfz"),
            std::pair(std::string("a\x80\xffz"), std::string()));
  EXPECT_EQ(written("a\xc4\x80z"),
            std::pair(std::string("a"), std::string("\xc4\x80z")));
  EXPECT_EQ(written("\xc3\xbf\xc3"),
            std::pair(std::string("\xff"), std::string("\xc3")));
}

TEST(Utf8, AcceptsTheEmptyText) {
  EXPECT_TRUE(is_utf8(""));
}

}  // namespace
}  // namespace postflight
