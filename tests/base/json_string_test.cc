#include "base/json_string.h"

#include "base/arbitrary_text.h"
#include "base/escape.h"
#include "base/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

namespace postflight {
namespace {

struct Written {
  std::string json;
  bool exact;

  bool operator==(const Written&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Written& written) {
  return out << written.json << (written.exact ? " exact" : " escaped");
}

Written write(std::string_view text) {
  Written written;
  written.exact = append_json_string(text, written.json);
  return written;
}

TEST(JsonString, QuotesPlainText) {
  EXPECT_EQ(write(""), (Written{"\"\"", true}));
  EXPECT_EQ(write("größe 漢 😀"), (Written{"\"größe 漢 😀\"", true}));
  EXPECT_EQ(write("a \"b\" \\c"), (Written{R"("a \"b\" \\c")", true}));
}

TEST(JsonString, AppendsToWhatIsThere) {
  std::string out = "[";
  EXPECT_TRUE(append_json_string("a", out));
  EXPECT_EQ(out, "[\"a\"");
}

TEST(JsonString, EscapesControlCharacters) {
  EXPECT_EQ(write("a\n\t\r\x1b\x7f"),
            (Written{R"("a\n\t\r\u001b\u007f")", true}));
  EXPECT_EQ(write("\xc2\x9b\xe2\x80\xae"),
            (Written{R"("\u009b\u202e")", true}));
  EXPECT_EQ(write("\xf3\xa0\x81\x81"), (Written{R"("\udb40\udc41")", true}));
}

TEST(JsonString, WritesLoneSurrogatesAsPythonDoes) {
  EXPECT_EQ(write("a\xed\xa0\x80\\"), (Written{R"("a\ud800\\")", true}));
  EXPECT_EQ(write("\xed\xbf\xbf"), (Written{R"("\udfff")", true}));
}

TEST(JsonString, SaysWhenItHadToEscapeBytes) {
  EXPECT_EQ(write("a\xff\\\n\"\xc3\xa9"),
            (Written{R"("a\\xff\\\\\n\"é")", false}));
}

bool has_surrogate(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (character.kind == Utf8Kind::kSurrogate)
      return true;
    text.remove_prefix(character.size);
  }
  return false;
}

RC_GTEST_PROP(JsonString, IsReadBackByAParser, ()) {
  const std::string text = *arbitrary_text();
  RC_PRE(!has_surrogate(text));  // which the parser refuses

  const Written written = write(text);
  const auto value = nlohmann::json::parse(written.json).get<std::string>();

  RC_ASSERT(written.exact == is_utf8(text));
  if (written.exact)
    RC_ASSERT(value == text);
  else
    RC_ASSERT(escape_for_terminal(value) ==
              escape_for_terminal(text, EscapeMode::kUnambiguous));
}

RC_GTEST_PROP(JsonString, IsFitForATerminal, ()) {
  const Written written = write(*arbitrary_text());
  RC_ASSERT(escape_for_terminal(written.json) == written.json);
}

}  // namespace
}  // namespace postflight
