#include "base/escape.h"

#include "base/arbitrary_text.h"
#include "base/utf8.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

TEST(EscapeForTerminal, LeavesPlainTextAlone) {
  for (const char* text :
       {"", "model.layers.0.weight", "a b~!\\ \"c\"", "Übergrößenträger",
        "漢字", "naïve e\xcc\x81", "😀\xef\xb8\x8f",
        "a rather long text, so that "
        "several words go at once"})
    EXPECT_EQ(escape_for_terminal(text), text);
}

TEST(EscapeForTerminal, ShowsControlCharacters) {
  EXPECT_EQ(escape_for_terminal("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(escape_for_terminal("\x1b]0;owned\x07"), "\\u{1b}]0;owned\\u{7}");
  EXPECT_EQ(escape_for_terminal(std::string_view("\0\x7f", 2)),
            "\\u{0}\\u{7f}");
}

TEST(EscapeForTerminal, ShowsC1ControlsInBothForms) {
  EXPECT_EQ(escape_for_terminal("\xc2\x9b"
                                "2J"),
            "\\u{9b}2J");
  EXPECT_EQ(escape_for_terminal("\x9b"
                                "2J"),
            "\\x9b2J");
}

TEST(EscapeForTerminal, ShowsWhatReordersOrHidesText) {
  for (const char32_t code_point :
       {0x202AU, 0x202EU,  0x2066U,  0x2069U, 0x200EU, 0x200FU, 0x061CU,
        0x2028U, 0x2029U,  0x200BU,  0x200CU, 0x200DU, 0x2060U, 0xFEFFU,
        0x00ADU, 0xE0000U, 0xE007FU, 0x0080U, 0x009FU, 0x115FU, 0x3164U}) {
    std::string text;
    append_utf8(code_point, text);
    EXPECT_EQ(escape_for_terminal(text),
              fmt::format("\\u{{{:x}}}", static_cast<unsigned>(code_point)));
  }
}

TEST(EscapeForTerminal, ShowsSurrogatesAndInvalidBytes) {
  EXPECT_EQ(escape_for_terminal("a\xed\xa0\x80z"), "a\\u{d800}z");
  EXPECT_EQ(escape_for_terminal("a\xe6\xbcz\xff"), "a\\xe6\\xbcz\\xff");
  EXPECT_EQ(escape_for_terminal("\xc0\x80"), "\\xc0\\x80");
}

TEST(EscapeForTerminal, DoublesBackslashesToBeUnambiguous) {
  EXPECT_EQ(escape_for_terminal("C:\\n\n", EscapeMode::kUnambiguous),
            "C:\\\\n\\n");
  EXPECT_EQ(escape_for_terminal("C:\\n\n", EscapeMode::kReadable), "C:\\n\\n");
}

RC_GTEST_PROP(EscapeForTerminal, WritesOnlyPlainCharacters, ()) {
  const std::string text = *arbitrary_text();
  const std::string escaped = escape_for_terminal(text);
  RC_ASSERT(is_utf8(escaped));
  for (std::string_view rest = escaped; !rest.empty();) {
    const Utf8Character character = decode_utf8(rest);
    RC_ASSERT(is_plain(character.code_point));
    rest.remove_prefix(character.size);
  }
}

// Undoes the unambiguous mode.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      out += text[at];
      continue;
    }
    switch (text[++at]) {
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'x':
        out += static_cast<char>(
            std::stoi(std::string(text.substr(at + 1, 2)), nullptr, 16));
        at += 2;
        break;
      case 'u': {
        const std::size_t end = text.find('}', at);
        const std::string digits(text.substr(at + 2, end - at - 2));
        append_utf8(static_cast<char32_t>(std::stoul(digits, nullptr, 16)),
                    out);
        at = end;
        break;
      }
      default:
        out += text[at];
    }
  }
  return out;
}

RC_GTEST_PROP(EscapeForTerminal, CanBeUndoneInUnambiguousMode, ()) {
  const std::string text = *arbitrary_text();
  RC_ASSERT(unescape(escape_for_terminal(text, EscapeMode::kUnambiguous)) ==
            text);
}

TEST(PrintableAsciiPrefix, EndsAtEveryOtherByteWhereverItLies) {
  for (int byte = 0; byte < 256; ++byte) {
    for (std::size_t place = 0; place < 20; ++place) {
      std::string text(20, '~');
      text[place] = static_cast<char>(byte);
      const bool is_printable = byte >= 0x20 && byte <= 0x7E;
      EXPECT_EQ(printable_ascii_prefix(text), is_printable ? 20 : place);
    }
  }
}

TEST(ShellQuoted, IsReadBackByAShell) {
  EXPECT_EQ(shell_quoted("dumps/rank_0"), "dumps/rank_0");
  EXPECT_EQ(shell_quoted("my dumps"), "'my dumps'");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_quoted("*.log"), "'*.log'");
  EXPECT_EQ(shell_quoted("größe"), "'größe'");
  EXPECT_EQ(shell_quoted("a\x1b[2J'\\"), "$'a\\x1b[2J\\'\\\\'");
}

}  // namespace
}  // namespace postflight
