#include "pickle/assembler.h"

#include <string>

#include <gtest/gtest.h>

namespace postflight {
namespace {

using std::string_literals::operator""s;

TEST(Assembler, WritesArgumentsAsTheirOpcodesHaveThem) {
  EXPECT_EQ(pickle("PROTO 4 FRAME 258 BININT -2 STOP"),
            "\x80\4\x95\2\1\0\0\0\0\0\0J\xfe\xff\xff\xff."s);
  EXPECT_EQ(pickle("BINFLOAT 1.5"), "G\x3f\xf8\0\0\0\0\0\0"s);
  EXPECT_EQ(pickle("GLOBAL 'os' 'system' INT '12'"), "cos\nsystem\nI12\n");
  EXPECT_EQ(pickle("SHORT_BINBYTES 'a\\x00\\n\\\\\\'' LONG1 -128 LONG1 128"),
            "C\5a\0\n\\'\x8a\1\x80\x8a\2\x80\0"s);
}

TEST(Assembler, WritesTheCountItIsTold) {
  EXPECT_EQ(pickle("BINUNICODE#500 'abc'"), "X\xf4\1\0\0abc"s);
  EXPECT_EQ(pickle("LONG4#-1 ''"), "\x8b\xff\xff\xff\xff");
}

TEST(Assembler, WritesRawBytes) {
  EXPECT_EQ(pickle("HEX 80 04 NONE RAW 'x y' STOP"), "\x80\4Nx y."s);
}

TEST(AssemblerDeathTest, StopsAtTokensThatMakeNoSense) {
  EXPECT_DEATH(pickle("NONE BOGUS"),
               "bad pickle text at \"BOGUS\": there is no such opcode");
  EXPECT_DEATH(pickle("BININT1 256"), "\"256\" is no number that fits here");
  EXPECT_DEATH(pickle("BINUNICODE 'abc"), "its quoted text has no end");
  EXPECT_DEATH(pickle("BINUNICODE abc"), "a quoted text should follow");
  EXPECT_DEATH(pickle("NONE#3"), "this opcode has no count");
}

}  // namespace
}  // namespace postflight
