#include "pickle/text_form.h"

#include <string>

#include <gtest/gtest.h>

#include "pickle/shown.h"

namespace postflight {
namespace {

using std::string_literals::operator""s;

std::string text_of(const Result<Value>& value) {
  return value ? shown(*value)
               : "error: " + std::string(value.error().message());
}

std::string from_int(std::string_view line) {
  Arena arena;
  return text_of(integer_from_int_line(line, arena, {}));
}

std::string from_long(std::string_view line) {
  Arena arena;
  return text_of(integer_from_long_line(line, arena, {}));
}

std::string from_float(std::string_view line) {
  Arena arena;
  return text_of(float_from_line(line, arena));
}

std::string from_string(std::string_view line) {
  Arena arena;
  return text_of(legacy_string_from_line(line, arena));
}

std::string from_unicode(std::string_view line) {
  Arena arena;
  return text_of(string_from_line(line, arena));
}

std::string from_memo_key(std::string_view line) {
  const Result<std::uint64_t> key = memo_key_from_line(line);
  return key ? std::to_string(*key)
             : "error: " + std::string(key.error().message());
}

TEST(TextForm, TakesIntOfTwoCharactersAndValue0Or1ForABoolean) {
  EXPECT_EQ(from_int("00"), "False");
  EXPECT_EQ(from_int("01"), "True");
  EXPECT_EQ(from_int("-0"), "False");
  EXPECT_EQ(from_int("+1"), "True");
  EXPECT_EQ(from_int(" 1"), "True");
  EXPECT_EQ(from_int("1\0"s), "True");
  EXPECT_EQ(from_int("\0\0"s), "False");
  EXPECT_EQ(from_int("0"), "0");
  EXPECT_EQ(from_int("1"), "1");
  EXPECT_EQ(from_int("001"), "1");
  EXPECT_EQ(from_int("-1"), "-1");
  EXPECT_EQ(from_int("02"), "2");
  // strtol rejects this one, and the fallback never returns a boolean.
  EXPECT_EQ(from_int("1 "), "1");
}

TEST(TextForm, ReadsIntAsStrtolThenAsPython) {
  EXPECT_EQ(from_int("010"), "8");
  EXPECT_EQ(from_int("0x1F"), "31");
  EXPECT_EQ(from_int("-0x10"), "-16");
  EXPECT_EQ(from_int("0b101"), "5");
  EXPECT_EQ(from_int("0o17"), "15");
  EXPECT_EQ(from_int("\t 7 \v"), "7");
  EXPECT_EQ(from_int("1_000"), "1000");
  EXPECT_EQ(from_int("0x_ff"), "255");
  EXPECT_EQ(from_int("0_0"), "0");
  EXPECT_EQ(from_int("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(from_int("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(from_int("9223372036854775808"), "big 9223372036854775808");
  EXPECT_EQ(from_int("-9223372036854775809"), "big -9223372036854775809");
}

TEST(TextForm, RefusesWhatIsNoInteger) {
  for (const char* const line :
       {"", " ", "x", "5x", "0x", "0x_", "08", "1__0", "_1", "1_", "0x__1",
        "- 5", "--5", "1.0", "12L"})
    EXPECT_EQ(from_int(line), "error: '"s + line + "' is not an integer");
}

TEST(TextForm, ReadsLongWithAndWithoutItsLetter) {
  EXPECT_EQ(from_long("0L"), "0");
  EXPECT_EQ(from_long("00"), "0");
  EXPECT_EQ(from_long("01"), "error: '01' is not an integer");
  EXPECT_EQ(from_long("-12L"), "-12");
  EXPECT_EQ(from_long("12"), "12");
  EXPECT_EQ(from_long(" 12 "), "12");
  EXPECT_EQ(from_long("0x1fL"), "31");
  EXPECT_EQ(from_long("-340282366920938463463374607431768211456L"),
            "big -340282366920938463463374607431768211456");
  for (const char* const line : {"", "L", "12LL", "12l", "L12", "1 2"})
    EXPECT_EQ(from_long(line).substr(0, 7), "error: ") << line;
}

TEST(TextForm, ReadsLinesUpToANulByte) {
  EXPECT_EQ(from_int("12\0garbage"s), "12");
  EXPECT_EQ(from_int("\0"s), "0");
  EXPECT_EQ(from_int("99999999999999999999\0x"s), "big 99999999999999999999");
  EXPECT_EQ(from_long("12\0garbage"s), "12");
  EXPECT_EQ(from_long("\0"s), "error: '\0' is not an integer"s);
  EXPECT_EQ(from_float("1.5\0garbage"s), "1.5");
  EXPECT_EQ(from_float("\0"s), "error: '\0' is not a number"s);
  EXPECT_EQ(from_memo_key("5\0garbage"s), "5");
}

TEST(TextForm, RefusesIntegersWithMoreDigitsThanAllowed) {
  const std::string longest(4300, '9');
  EXPECT_EQ(from_long(longest + "L"), "big " + longest);
  EXPECT_EQ(from_long("-" + longest + "L"), "big -" + longest);
  EXPECT_EQ(from_long("9" + longest),
            "error: an integer has 4301 digits, more than the 4300 allowed");
  EXPECT_EQ(from_int("9" + longest),
            "error: an integer has 4301 digits, more than the 4300 allowed");
}

TEST(TextForm, ReadsFloatsAsPython) {
  EXPECT_EQ(from_float("1"), "1.0");
  EXPECT_EQ(from_float("1."), "1.0");
  EXPECT_EQ(from_float(".5"), "0.5");
  EXPECT_EQ(from_float("+2.5"), "2.5");
  EXPECT_EQ(from_float("-1E-5"), "-1e-05");
  EXPECT_EQ(from_float("inf"), "inf");
  EXPECT_EQ(from_float("-Infinity"), "-inf");
  EXPECT_EQ(from_float("NaN"), "nan");
  EXPECT_EQ(from_float("1e-400"), "0.0");
  EXPECT_EQ(from_float("-1e-400"), "-0.0");
  EXPECT_EQ(from_float("4.9e-324"), "5e-324");
  EXPECT_EQ(from_float("1e400"), "error: '1e400' is too large for a float");
  for (const char* const line : {"", " 1", "1 ", "1e", "0x10", "1_0", "+-1",
                                 "-+1", "infi", "nan(1)", ".", "1,5"})
    EXPECT_EQ(from_float(line), "error: '"s + line + "' is not a number");
}

TEST(TextForm, ReadsQuotedStringsOfPython2) {
  EXPECT_EQ(from_string("''"), "legacy b''");
  EXPECT_EQ(from_string("\"it's\""), "legacy b\"it's\"");
  EXPECT_EQ(from_string("'a\\'b'"), "legacy b\"a'b\"");
  EXPECT_EQ(from_string("'\\x41\\101\\n\\t\\\\'"), "legacy b'AA\\n\\t\\\\'");
  EXPECT_EQ(from_string("'\\0\\18\\777'"), "legacy b'\\x00\\x018\\xff'");
  EXPECT_EQ(from_string("'\\q\\u0041'"), "legacy b'\\\\q\\\\u0041'");
  EXPECT_EQ(from_string("'a\0b\xff'"s), "legacy b'a\\x00b\\xff'");
  for (const char* const line : {"", "'", "abc", "'abc", "abc'", "'abc\""})
    EXPECT_EQ(from_string(line), "error: the string is not in quotes") << line;
  EXPECT_EQ(from_string("'a\\'"),
            "error: the string ends with a lone backslash");
  for (const char* const line : {"'\\x'", "'\\x4'", "'\\x4g'", "'\\x-1'"})
    EXPECT_EQ(from_string(line),
              "error: the string has \\x without two hex digits")
        << line;
}

TEST(TextForm, ReadsUnicodeEscapesAndNothingElse) {
  EXPECT_EQ(from_unicode(""), "''");
  EXPECT_EQ(from_unicode("caf\xe9"), "'café'");
  EXPECT_EQ(from_unicode("\\u20ac\\U0001f600"), "'€😀'");
  EXPECT_EQ(from_unicode("\\ud800"), "'\\ud800'");
  EXPECT_EQ(from_unicode("\\x41\\n"), "'\\\\x41\\\\n'");
  EXPECT_EQ(from_unicode("\\\\u0041"), "'\\\\\\\\u0041'");
  EXPECT_EQ(from_unicode("\\\\\\u0041"), "'\\\\\\\\A'");
  EXPECT_EQ(from_unicode("\\"), "'\\\\'");
  for (const char* const line : {"\\u", "\\u12", "\\u12g4", "\\u-123"})
    EXPECT_EQ(from_unicode(line), "error: the string has a bad \\u escape");
  for (const char* const line : {"\\U0001f60", "\\U00110000"})
    EXPECT_EQ(from_unicode(line), "error: the string has a bad \\U escape");
}

TEST(TextForm, ReadsMemoKeysInDecimal) {
  EXPECT_EQ(from_memo_key("0"), "0");
  EXPECT_EQ(from_memo_key("-0"), "0");
  EXPECT_EQ(from_memo_key("+7"), "7");
  EXPECT_EQ(from_memo_key(" 007 "), "7");
  EXPECT_EQ(from_memo_key("1_0"), "10");
  EXPECT_EQ(from_memo_key("18446744073709551615"), "18446744073709551615");
  for (const char* const line :
       {"", "-1", "x", "0x10", "1.0", "5L", "18446744073709551616"})
    EXPECT_EQ(from_memo_key(line),
              "error: '"s + line + "' is not a memo index");
}

TEST(TextForm, QuotesOnlyTheFrontOfALongLine) {
  const std::string forty(40, 'x');
  EXPECT_EQ(from_int(forty), "error: '" + forty + "' is not an integer");
  EXPECT_EQ(from_int(forty + "y"), "error: '" + forty + "…' is not an integer");
  EXPECT_EQ(from_float(forty + "y"), "error: '" + forty + "…' is not a number");
  EXPECT_EQ(from_memo_key(forty + "y"),
            "error: '" + forty + "…' is not a memo index");
  // A character is not cut in two.
  const std::string shorter(39, 'x');
  EXPECT_EQ(from_int(shorter + "é" + forty),
            "error: '" + shorter + "…' is not an integer");
  EXPECT_EQ(from_float(std::string(5000, '9')),
            "error: '" + std::string(40, '9') + "…' is too large for a float");
}

TEST(TextForm, KeepsEmptyTextOfNowhere) {
  Arena arena;
  EXPECT_EQ(shown(kept_text(Kind::kString, {}, arena)), "''");
  EXPECT_EQ(shown(integer_from_twos_complement({}, arena)), "0");
}

}  // namespace
}  // namespace postflight
