#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "pickle/assembler.h"
#include "pickle/machine.h"
#include "pickle/shown.h"

namespace postflight {
namespace {

std::string error_of(std::string_view text) {
  const std::string bytes = pickle(text);
  Machine machine;
  const Result<Pickle> read = machine.load(as_bytes(bytes));
  return read ? "no error" : std::string(read.error().message());
}

TEST(MachineError, NamesThePlaceTheOpcodeAndTheFault) {
  EXPECT_EQ(error_of(""), "byte 0: the pickle ends without STOP");
  EXPECT_EQ(error_of("PROTO 2 NONE"), "byte 3: the pickle ends without STOP");
  EXPECT_EQ(error_of("NONE HEX ff"), "byte 1: 0xff is not a pickle opcode");
  EXPECT_EQ(error_of("HEX 00"), "byte 0: 0x00 is not a pickle opcode");
  EXPECT_EQ(error_of("NONE TUPLE2"), "byte 1: TUPLE2 underflows the stack");
  EXPECT_EQ(error_of("STOP"), "byte 0: STOP underflows the stack");
  EXPECT_EQ(error_of("POP"), "byte 0: POP underflows the stack");
  EXPECT_EQ(error_of("PROTO 6 NONE STOP"),
            "byte 0: pickle protocol 6 is newer than 5");
}

TEST(MachineError, NoticesWhenBytesAreMissing) {
  EXPECT_EQ(error_of("BINUNICODE#500 'abc'"),
            "byte 0: BINUNICODE needs 500 bytes, 3 are left");
  EXPECT_EQ(error_of("NONE BINUNICODE8#18446744073709551615 'abc'"),
            "byte 1: BINUNICODE8 needs 18446744073709551615 bytes, 3 are left");
  EXPECT_EQ(error_of("BINBYTES#4294967295 ''"),
            "byte 0: BINBYTES needs 4294967295 bytes, 0 are left");
  EXPECT_EQ(error_of("LONG4#2147483647 'a'"),
            "byte 0: LONG4 needs 2147483647 bytes, 1 are left");
  EXPECT_EQ(error_of("LONG1#9 '12345678'"),
            "byte 0: LONG1 needs 9 bytes, 8 are left");
  EXPECT_EQ(error_of("SHORT_BINUNICODE#4 'abc'"),
            "byte 0: SHORT_BINUNICODE needs 4 bytes, 3 are left");
  EXPECT_EQ(error_of("BYTEARRAY8#9223372036854775808 ''"),
            "byte 0: BYTEARRAY8 needs 9223372036854775808 bytes, 0 are left");
  EXPECT_EQ(error_of("FRAME 3 NONE STOP"),
            "byte 0: FRAME needs 3 bytes, 2 are left");
  EXPECT_EQ(error_of("HEX 4a 00 00"),
            "byte 0: BININT needs 4 bytes, 2 are "
            "left");
  EXPECT_EQ(error_of("HEX 47 00"),
            "byte 0: BINFLOAT needs 8 bytes, 1 are "
            "left");
  EXPECT_EQ(error_of("HEX 80"), "byte 0: PROTO needs 1 bytes, 0 are left");
  EXPECT_EQ(error_of("RAW 'cos\\nsystem'"),
            "byte 0: the line of GLOBAL has no end");
  EXPECT_EQ(error_of("RAW 'I12'"), "byte 0: the line of INT has no end");
}

TEST(MachineError, RefusesNegativeSizes) {
  EXPECT_EQ(error_of("LONG4#-1 ''"), "byte 0: LONG4 has a negative size");
  EXPECT_EQ(error_of("BINSTRING#-2147483648 'abc'"),
            "byte 0: BINSTRING has a negative size");
}

TEST(MachineError, MissesMarks) {
  for (const char* const opcode :
       {"TUPLE", "LIST", "DICT", "FROZENSET", "APPENDS", "SETITEMS", "ADDITEMS",
        "POP_MARK", "OBJ"})
    EXPECT_EQ(error_of(fmt::format("NONE {}", opcode)),
              fmt::format("byte 1: {} finds no MARK", opcode));
  EXPECT_EQ(error_of("NONE INST 'a' 'b'"), "byte 1: INST finds no MARK");
  EXPECT_EQ(error_of("MARK POP TUPLE"), "byte 2: TUPLE finds no MARK");
}

TEST(MachineError, MissesMemoEntries) {
  EXPECT_EQ(error_of("BINGET 7"),
            "byte 0: BINGET refers to a memo entry that does not exist");
  EXPECT_EQ(error_of("NONE BINPUT 7 LONG_BINGET 8"),
            "byte 3: LONG_BINGET refers to a memo entry that does not exist");
  EXPECT_EQ(error_of("GET '4294967296'"),
            "byte 0: GET refers to a memo entry that does not exist");
  EXPECT_EQ(error_of("GET 'x'"), "byte 0: 'x' is not a memo index");
  EXPECT_EQ(error_of("NONE PUT '-1'"), "byte 1: '-1' is not a memo index");
}

TEST(MachineError, RefusesArgumentsThatMakeNoSense) {
  EXPECT_EQ(error_of("EMPTY_DICT MARK NONE SETITEMS"),
            "byte 3: SETITEMS has a key without a value");
  EXPECT_EQ(error_of("MARK NONE DICT"),
            "byte 2: DICT has a key without a value");
  for (const char* const opcode : {"EXT1 0", "EXT2 0", "EXT4 0", "EXT4 -1"})
    EXPECT_EQ(error_of(opcode),
              "byte 0: extension code is outside 1 to 2147483647");
  EXPECT_EQ(error_of("SHORT_BINUNICODE 'os' NONE STACK_GLOBAL"),
            "byte 5: STACK_GLOBAL needs two strings on the stack");
  EXPECT_EQ(error_of("SHORT_BINBYTES 'os' SHORT_BINUNICODE 'a' STACK_GLOBAL"),
            "byte 7: STACK_GLOBAL needs two strings on the stack");
  EXPECT_EQ(error_of("INT 'x'"), "byte 0: 'x' is not an integer");
  EXPECT_EQ(error_of("LONG ''"), "byte 0: '' is not an integer");
  EXPECT_EQ(error_of("FLOAT '1e999'"),
            "byte 0: '1e999' is too large for a float");
  EXPECT_EQ(error_of("STRING 'a'"), "byte 0: the string is not in quotes");
  EXPECT_EQ(error_of("UNICODE '\\\\u12'"),
            "byte 0: the string has a bad \\u escape");
  EXPECT_EQ(error_of("LONG '" + std::string(5000, '9') + "'"),
            "byte 0: an integer has 5000 digits, more than the 4300 allowed");
}

TEST(MachineError, TellsKindsApart) {
  const auto kind_of = [](std::string_view text) {
    const std::string bytes = pickle(text);
    return Machine().load(as_bytes(bytes)).error().kind();
  };
  EXPECT_EQ(kind_of("POP"), ErrorKind::kCorrupt);
  EXPECT_EQ(kind_of("PROTO 6"), ErrorKind::kUnsupported);
  EXPECT_EQ(kind_of("LONG '" + std::string(5000, '9') + "'"),
            ErrorKind::kRefused);
}

TEST(MachineError, LeavesAMachineThatReadsTheNextPickle) {
  Machine machine;
  const std::string good = pickle("EMPTY_LIST NONE APPEND STOP");
  for (const char* const text : {"MARK MARK NONE", "EMPTY_LIST MARK",
                                 "NONE LONG_BINPUT 4000000000 POP "
                                 "POP",
                                 "GLOBAL 'a' 'b' EMPTY_TUPLE REDUCE HEX ff"}) {
    const std::string bad = pickle(text);
    EXPECT_FALSE(machine.load(as_bytes(bad)));
    const Result<Pickle> read = machine.load(as_bytes(good));
    ASSERT_TRUE(read);
    EXPECT_EQ(shown(read->root), "[None]");
  }
}

}  // namespace
}  // namespace postflight
