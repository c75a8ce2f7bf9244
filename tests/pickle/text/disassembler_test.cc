#include "pickle/text/disassembler.h"

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pickle/assembler.h"

namespace postflight {
namespace {

using ::testing::ElementsAre;

// What a disassembly shows: each instruction's name and argument, then the
// error if it ends in one.
std::vector<std::string> listing(const std::string& bytes) {
  std::vector<std::string> lines;
  Disassembler disassembler(as_bytes(bytes));
  while (true) {
    const Result<std::optional<Instruction>> next = disassembler.next();
    if (!next) {
      lines.push_back("error: " + std::string(next.error().message()));
      return lines;
    }
    if (!*next)
      return lines;
    const std::string argument = argument_text(**next);
    lines.push_back(std::string((*next)->info->name) +
                    (argument.empty() ? "" : " " + argument));
  }
}

std::string first_line(std::string_view text) {
  return listing(pickle(text)).front();
}

// Walks to the end or the first error, checking what must hold on any input:
// instructions tile the bytes, and an error repeats itself. Returns how many
// instructions there were, or nothing where it failed.
std::optional<std::size_t> walk(std::string_view bytes) {
  Disassembler disassembler(as_bytes(bytes));
  std::size_t count = 0;
  std::uint64_t end = 0;
  while (true) {
    Result<std::optional<Instruction>> next = disassembler.next();
    if (!next) {
      EXPECT_EQ(disassembler.next().error().message(), next.error().message());
      EXPECT_EQ(disassembler.offset(), end);
      return std::nullopt;
    }
    if (!*next)
      return count;
    EXPECT_EQ((*next)->offset, end);
    EXPECT_EQ((*next)->size, (*next)->raw.size() + 1);
    end += (*next)->size;
    EXPECT_LE(end, bytes.size());
    EXPECT_EQ(argument_text(**next).empty(), (*next)->kind == Kind::kNone);
    ++count;
  }
}

std::string flight_dump() {
  std::ifstream file(TEST_DATA "/flight/nccl_long_run/nccl_trace_rank_0",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Instructions of every kind of argument.
constexpr std::size_t kSamplerSize = 38;
std::string every_argument() {
  return pickle(
      "PROTO 5 FRAME 300 MARK EMPTY_DICT SHORT_BINUNICODE 'key' MEMOIZE "
      "BININT 100000 BININT2 300 BININT1 7 SETITEM INT '12' INT '01' "
      "LONG '123L' FLOAT '1.5' STRING '\\'a\\\\x41\\'' UNICODE 'a\\\\u20ac' "
      "GLOBAL 'os' 'system' INST 'a' 'b' PERSID 'id' GET '0' PUT '1' "
      "BINFLOAT 0.1 LONG1 -300 LONG4 70000 BINSTRING 'x' SHORT_BINSTRING 'y' "
      "BINUNICODE 'z' BINUNICODE8 'w' BINBYTES 'b' SHORT_BINBYTES 'c' "
      "BINBYTES8 'd' BYTEARRAY8 'e' LONG_BINPUT 9 LONG_BINGET 9 EXT1 1 EXT2 2 "
      "EXT4 3 STOP");
}

TEST(Disassembler, ListsInstructionsUpToStop) {
  EXPECT_THAT(
      listing(pickle("PROTO 4 EMPTY_DICT MARK BINUNICODE 'key' BININT1 7 "
                     "SETITEMS STOP NONE")),
      ElementsAre("PROTO 4", "EMPTY_DICT", "MARK", "BINUNICODE 'key'",
                  "BININT1 7", "SETITEMS", "STOP"));
}

TEST(Disassembler, SaysWhereEachInstructionLies) {
  const std::string bytes = pickle("PROTO 2 BINUNICODE 'ab' STOP NONE");
  Disassembler disassembler(as_bytes(bytes));
  ASSERT_TRUE(disassembler.next());
  const Instruction text = **disassembler.next();
  EXPECT_EQ(text.offset, 2u);
  EXPECT_EQ(text.size, 7u);
  EXPECT_EQ(as_text(text.raw), std::string_view("\2\0\0\0ab", 6));
  EXPECT_EQ(text.text, "ab");
  EXPECT_EQ((**disassembler.next()).offset, 9u);
  EXPECT_FALSE(disassembler.next()->has_value());
  EXPECT_EQ(disassembler.offset(), 10u);
}

TEST(Disassembler, PrintsIntegersAsPython) {
  EXPECT_EQ(first_line("BININT -2147483648"), "BININT -2147483648");
  EXPECT_EQ(first_line("BININT2 65535"), "BININT2 65535");
  EXPECT_EQ(first_line("LONG_BINPUT 4294967295"), "LONG_BINPUT 4294967295");
  EXPECT_EQ(first_line("EXT4 -1"), "EXT4 -1");
  EXPECT_EQ(first_line("FRAME 18446744073709551615"),
            "FRAME 18446744073709551615");
  EXPECT_EQ(first_line("LONG1 ''"), "LONG1 0");
  EXPECT_EQ(first_line("LONG1 -1"), "LONG1 -1");
  EXPECT_EQ(first_line("LONG1 -9223372036854775808"),
            "LONG1 -9223372036854775808");
  EXPECT_EQ(first_line("LONG1 '\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01'"),
            "LONG1 18446744073709551616");
  EXPECT_EQ(first_line("LONG1 '\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\xff'"),
            "LONG1 -18446744073709551616");
}

TEST(Disassembler, PrintsIntegersTooLongForDecimalInHex) {
  const std::string longest(4300, '9');
  EXPECT_EQ(first_line("LONG '" + longest + "'"), "LONG " + longest);
  const std::string huge = "LONG4 '" + std::string(2000, 'a') + "'";
  const std::string line = first_line(huge);
  EXPECT_EQ(line.substr(0, 14), "LONG4 0x616161");
  EXPECT_EQ(line.size(), 8u + 4000u);
}

TEST(Disassembler, PrintsFloatsAsPython) {
  EXPECT_EQ(first_line("BINFLOAT 0.1"), "BINFLOAT 0.1");
  EXPECT_EQ(first_line("BINFLOAT 1"), "BINFLOAT 1.0");
  EXPECT_EQ(first_line("BINFLOAT -0.0"), "BINFLOAT -0.0");
  EXPECT_EQ(first_line("BINFLOAT 1e16"), "BINFLOAT 1e+16");
  EXPECT_EQ(first_line("BINFLOAT 123456789012345.6"),
            "BINFLOAT 123456789012345.6");
  EXPECT_EQ(first_line("BINFLOAT 5e-324"), "BINFLOAT 5e-324");
  EXPECT_EQ(first_line("BINFLOAT 0.0001"), "BINFLOAT 0.0001");
  EXPECT_EQ(first_line("BINFLOAT 0.00001"), "BINFLOAT 1e-05");
  EXPECT_EQ(first_line("BINFLOAT -inf"), "BINFLOAT -inf");
  EXPECT_EQ(first_line("BINFLOAT -nan"), "BINFLOAT nan");
}

TEST(Disassembler, PrintsStringsAsPython) {
  EXPECT_EQ(first_line("BINUNICODE 'it\\'s'"), "BINUNICODE \"it's\"");
  EXPECT_EQ(first_line("BINUNICODE '\\'\"'"), "BINUNICODE '\\'\"'");
  EXPECT_EQ(first_line("BINUNICODE 'a\\\\b\\n\\x1b[2J'"),
            "BINUNICODE 'a\\\\b\\n\\x1b[2J'");
  EXPECT_EQ(first_line("BINUNICODE '\xe2\x82\xac'"),
            "BINUNICODE '\xe2\x82\xac'");
  EXPECT_EQ(first_line("BYTEARRAY8 'hi'"), "BYTEARRAY8 bytearray(b'hi')");
  EXPECT_EQ(first_line("SHORT_BINBYTES 'a\\xe9'"), "SHORT_BINBYTES b'a\\xe9'");
  // A Python 2 str is shown one character a byte.
  EXPECT_EQ(first_line("SHORT_BINSTRING 'a\\xe9\\x80'"),
            "SHORT_BINSTRING 'a\xc3\xa9\\x80'");
}

TEST(Disassembler, EscapesWhatATerminalShouldNotSee) {
  // A change of writing direction, a lone surrogate, a C1 control, a
  // noncharacter, a private character beyond the basic plane.
  EXPECT_EQ(first_line("BINUNICODE '\xe2\x80\xae'"), "BINUNICODE '\\u202e'");
  EXPECT_EQ(first_line("BINUNICODE '\xed\xb0\x80'"), "BINUNICODE '\\udc00'");
  EXPECT_EQ(first_line("BINUNICODE '\xc2\x9b'"), "BINUNICODE '\\x9b'");
  EXPECT_EQ(first_line("BINUNICODE '\xef\xbf\xbf'"), "BINUNICODE '\\uffff'");
  EXPECT_EQ(first_line("BINUNICODE '\xf3\xb0\x80\x80'"),
            "BINUNICODE '\\U000f0000'");
  EXPECT_EQ(first_line("GLOBAL '\\x1b[2J' 'x'"), "GLOBAL '\\x1b[2J x'");
}

TEST(Disassembler, KeepsTextThatIsNotUtf8) {
  EXPECT_EQ(first_line("BINUNICODE 'a\\xff\\xc3'"), "BINUNICODE 'a\\xff\\xc3'");
  EXPECT_EQ(first_line("BINUNICODE '\\xc0\\x80\\xf4\\x90\\x80\\x80'"),
            "BINUNICODE '\\xc0\\x80\\xf4\\x90\\x80\\x80'");
}

TEST(Disassembler, ReadsTheLinesOfProtocol0) {
  EXPECT_EQ(first_line("INT '12'"), "INT 12");
  EXPECT_EQ(first_line("INT '01'"), "INT True");
  EXPECT_EQ(first_line("INT '00'"), "INT False");
  EXPECT_EQ(first_line("INT '0x1f'"), "INT 31");
  EXPECT_EQ(first_line("LONG '123456789012345678901234567890L'"),
            "LONG 123456789012345678901234567890");
  EXPECT_EQ(first_line("LONG '-5'"), "LONG -5");
  EXPECT_EQ(first_line("FLOAT '-1e300'"), "FLOAT -1e+300");
  EXPECT_EQ(first_line("STRING '\"a\\\\x00\"'"), "STRING 'a\\x00'");
  EXPECT_EQ(first_line("UNICODE 'ab\\\\u20ac'"), "UNICODE 'ab\xe2\x82\xac'");
  EXPECT_EQ(first_line("GLOBAL 'os' 'system'"), "GLOBAL 'os system'");
  EXPECT_EQ(first_line("PERSID ' abc'"), "PERSID ' abc'");
  EXPECT_EQ(first_line("GET '7'"), "GET 7");
  EXPECT_EQ(first_line("PUT '18446744073709551615'"),
            "PUT 18446744073709551615");
}

TEST(Disassembler, RefusesLinesThatPythonRefuses) {
  EXPECT_EQ(first_line("INT '12x'"),
            "error: byte 0: INT: '12x' is not an integer");
  EXPECT_EQ(first_line("LONG ''"), "error: byte 0: LONG: '' is not an integer");
  EXPECT_EQ(first_line("FLOAT '1.5.2'"),
            "error: byte 0: FLOAT: '1.5.2' is not a number");
  EXPECT_EQ(first_line("STRING 'abc'"),
            "error: byte 0: STRING: the string is not in quotes");
  EXPECT_EQ(first_line("UNICODE '\\\\u12'"),
            "error: byte 0: UNICODE: the string has a bad \\u escape");
  EXPECT_EQ(first_line("PUT 'x'"),
            "error: byte 0: PUT: 'x' is not a memo index");
}

TEST(Disassembler, SaysHowManyBytesAreMissing) {
  EXPECT_THAT(
      listing(pickle("PROTO 4 BINUNICODE '12345' BINUNICODE#500 '"
                     "12345678901234567890'")),
      ElementsAre("PROTO 4", "BINUNICODE '12345'",
                  "error: byte 12: BINUNICODE needs 500 bytes, 20 are left"));
  EXPECT_EQ(first_line("SHORT_BINBYTES#2 'a'"),
            "error: byte 0: SHORT_BINBYTES needs 2 bytes, 1 is left");
  EXPECT_EQ(first_line("HEX 4b"),
            "error: byte 0: BININT1 needs 1 byte, 0 are left");
  EXPECT_EQ(first_line("BINBYTES8#18446744073709551615 'abc'"),
            "error: byte 0: BINBYTES8 needs 18446744073709551615 bytes, 3 are "
            "left");
}

TEST(Disassembler, RefusesNegativeCounts) {
  EXPECT_EQ(first_line("LONG4#-1 ''"),
            "error: byte 0: LONG4 has a negative count, -1");
  EXPECT_EQ(first_line("BINSTRING#-2147483648 'abc'"),
            "error: byte 0: BINSTRING has a negative count, -2147483648");
}

TEST(Disassembler, RefusesBytesThatAreNoOpcode) {
  EXPECT_THAT(listing(pickle("PROTO 4 SHORT_BINUNICODE 'abc' HEX ff")),
              ElementsAre("PROTO 4", "SHORT_BINUNICODE 'abc'",
                          "error: byte 7: 0xff is not a pickle opcode"));
}

TEST(Disassembler, RefusesLinesWithoutEnd) {
  EXPECT_THAT(listing(pickle("PROTO 2 NONE RAW 'cos'")),
              ElementsAre("PROTO 2", "NONE",
                          "error: byte 3: line of GLOBAL has no end"));
  EXPECT_THAT(listing(pickle("RAW 'cos\\nsystem'")),
              ElementsAre("error: byte 0: line of GLOBAL has no end"));
}

TEST(Disassembler, RefusesPicklesWithoutStop) {
  EXPECT_THAT(listing(pickle("NONE")),
              ElementsAre("NONE", "error: byte 1: pickle ends without STOP"));
  EXPECT_THAT(listing(""),
              ElementsAre("error: byte 0: pickle ends without STOP"));
}

TEST(Disassembler, RefusesIntegersBeyondTheLimit) {
  EXPECT_EQ(first_line("LONG '" + std::string(4301, '1') + "'"),
            "error: byte 0: LONG: an integer has 4301 digits, more than the "
            "4300 allowed");
}

// Counted with pickletools.genops.
TEST(Disassembler, ReadsAFlightRecorderDump) {
  const std::string dump = flight_dump();
  std::map<std::string_view, int> counts;
  Disassembler disassembler(as_bytes(dump));
  while (true) {
    const std::optional<Instruction> next = *disassembler.next();
    if (!next)
      break;
    ++counts[next->info->name];
  }
  EXPECT_EQ(disassembler.offset(), dump.size());
  const std::map<std::string_view, int> expected = {
      {"APPENDS", 8261},  {"BINGET", 53593},    {"BININT", 1182},
      {"BININT1", 5533},  {"BININT2", 2744},    {"BINPUT", 74},
      {"BINUNICODE", 60}, {"EMPTY_DICT", 1200}, {"EMPTY_LIST", 8261},
      {"LONG1", 1934},    {"MARK", 9461},       {"NEWFALSE", 1609},
      {"NEWTRUE", 751},   {"NONE", 1606},       {"PROTO", 1},
      {"SETITEMS", 1200}, {"STOP", 1},          {"TUPLE2", 1180}};
  EXPECT_EQ(counts, expected);
}

TEST(Disassembler, FailsOnEveryPrefix) {
  const std::string all = every_argument();
  ASSERT_EQ(walk(all), kSamplerSize);
  for (std::size_t size = 0; size < all.size(); ++size) {
    // Of exactly this size on the heap, so that a sanitizer sees the first
    // byte read beyond it.
    const std::vector<char> prefix(all.data(), all.data() + size);
    EXPECT_FALSE(walk({prefix.data(), prefix.size()})) << size;
  }
  const std::string dump = flight_dump();
  for (std::size_t size = 0; size < dump.size(); size += 1999)
    EXPECT_FALSE(walk(std::string_view(dump).substr(0, size))) << size;
}

TEST(Disassembler, SurvivesEveryFlippedByte) {
  std::string all = every_argument();
  for (char& byte : all) {
    const char kept = byte;
    for (int value = 0; value < 256; ++value) {
      byte = static_cast<char>(value);
      walk(all);
    }
    byte = kept;
  }
  EXPECT_EQ(walk(all), kSamplerSize);
  std::string dump = flight_dump();
  for (std::size_t at = 0; at < dump.size(); at += 1999) {
    dump[at] = static_cast<char>(~dump[at]);
    walk(dump);
  }
}

TEST(Disassembler, SurvivesNoise) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string noise(random() % 64, '\0');
    for (char& byte : noise)
      byte = static_cast<char>(random());
    walk(noise);
  }
}

}  // namespace
}  // namespace postflight
