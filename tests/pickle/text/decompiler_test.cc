#include "pickle/text/decompiler.h"

#include <gtest/gtest.h>

#include "pickle/assembler.h"

namespace postflight {
namespace {

// The lines, and the error behind a !.
std::string decompiled(std::string_view bytes, std::size_t text = 200) {
  std::string all;
  const Result<> done = decompile(as_bytes(bytes), {.text = text}, Limits{},
                                  [&all](std::string_view line) {
                                    all += line;
                                    all += "\n";
                                  });
  if (!done)
    all += "! " + std::string(done.error().message()) + "\n";
  return all;
}

TEST(Decompiler, WritesStatementsInOrder) {
  EXPECT_EQ(
      decompiled(pickle("PROTO 2 EMPTY_DICT BINPUT 0 UNICODE 'a' GLOBAL 'os' "
                        "'system' UNICODE 'id' TUPLE1 REDUCE SETITEM BINGET 0 "
                        "EMPTY_DICT BUILD TUPLE2 STOP")),
      "x0 = {}\n"
      "import os\n"
      "x1 = os.system('id')\n"
      "x0['a'] = x1\n"
      "x2 = {}\n"
      "x0.__setstate__(x2)\n"
      "result = (x0, x0)\n");
}

TEST(Decompiler, WritesNamesThatAreNoIdentifiersAsText) {
  EXPECT_EQ(decompiled(pickle("GLOBAL 'a b' 'c;d' STOP")),
            "x0 = getattr(__import__('a b'), 'c;d')\nresult = x0\n");
}

TEST(Decompiler, SaysWhereThePickleBreaksOff) {
  EXPECT_EQ(decompiled("cos\nsystem\n(S'id'\ntR"),
            "import os\nx0 = os.system(b'id')\n"
            "! byte 20: pickle ends without STOP\n");
  EXPECT_EQ(decompiled("R"), "! byte 0: the stack underflows\n");
}

TEST(Decompiler, WritesNothingTwiceAtLength) {
  // Each tuple holds the one before twice.
  std::string bytes = "(t";
  for (int i = 0; i < 40; ++i)
    bytes += "2\x86";
  const std::string all = decompiled(bytes + ".");
  EXPECT_LT(all.size(), 4000u);
  std::string long_text = "V" + std::string(100'000, 'x') + "\n";
  for (int i = 0; i < 1000; ++i)
    long_text += "2";
  EXPECT_LT(decompiled(long_text + ".").size(), 1000u);
  EXPECT_LT(decompiled(long_text + ".", 0).size(), 110'000u);
}

TEST(Decompiler, SurvivesEveryPrefixAndEveryByte) {
  const std::string bytes = pickle(
      "PROTO 4 MARK UNICODE 'abc' BININT 5 GLOBAL 'a' 'b' EMPTY_TUPLE REDUCE "
      "LIST EMPTY_LIST APPEND BINPERSID NEXT_BUFFER TUPLE2 STOP");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    static_cast<void>(decompiled(std::string_view(bytes).substr(0, i)));
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(byte);
      static_cast<void>(decompiled(changed));
    }
  }
}

}  // namespace
}  // namespace postflight
