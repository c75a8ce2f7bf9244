#include "pickle/audit/scrutiny.h"

#include <gtest/gtest.h>

#include "pickle/assembler.h"
#include "pickle/frame.h"

namespace postflight {
namespace {

using namespace std::string_literals;

// The kinds of doubts and their places, "kind at byte N" by line.
std::string doubts(std::string_view bytes) {
  std::string all;
  for (const Reason& reason : scrutinize(as_bytes(bytes)).doubts) {
    EXPECT_EQ(reason.safety, Safety::kUnknown);
    all += reason.kind + " at " + reason.where + "\n";
  }
  return all;
}

TEST(Scrutiny, DoubtsNothingThatPicklersWrite) {
  EXPECT_EQ(doubts(pickle("PROTO 4 FRAME 4 EMPTY_LIST MEMOIZE NONE STOP")), "");
  EXPECT_EQ(doubts("\x80\4" + frame(2) + "]\x94" + frame(2) + "a."), "");
  EXPECT_EQ(doubts("(I01\nI-5\nL7L\nF1e-07\nF-1.5\nFinf\np0\n0g0\nt."), "");
}

TEST(Scrutiny, DoubtsFramesThatDoNotFit) {
  EXPECT_EQ(doubts("\x80\4" + frame(3) + "X\1\0\0\0a."s),
            "frame_ends_inside at byte 11\n");
  EXPECT_EQ(doubts("\x80\4" + frame(20) + frame(2) + "N."),
            "frame_inside_frame at byte 11\n");
  EXPECT_EQ(doubts("\x80\4" + frame(20) + "N."), "frame_too_long at byte 2\n");
  EXPECT_EQ(doubts("\x80\4" + frame(1) + "I5\n."),
            "frame_ends_inside at byte 11\n");
}

TEST(Scrutiny, DoubtsSpellingsOfNumbers) {
  for (const char* const line :
       {"I010\n", "I 1\n", "I1_0\n", "I0x10\n", "I+1\n", "L1 L\n", "F1_0\n",
        "F 1\n", "F0x1p3\n", "g01\n", "g-1\n", "p1_0\n", "Finfinity\n"})
    EXPECT_EQ(doubts(std::string("N") + line + "."), "number_text at byte 1\n")
        << line;
  EXPECT_EQ(doubts("I1\0002\n."s), "number_text at byte 0\n");
}

TEST(Scrutiny, DoubtsWhatTheReadingProgramProvides) {
  EXPECT_EQ(doubts("\x80\5\x97\x98."), "buffer at byte 2\n");
  EXPECT_EQ(doubts("\x82\7."), "extension at byte 0\n");
}

TEST(Scrutiny, DoubtsTheRest) {
  EXPECT_EQ(doubts("N\x80\2."), "proto_inside at byte 1\n");
  EXPECT_EQ(doubts("Nr\xff\xff\xff\xff."), "memo_key at byte 1\n");
  EXPECT_EQ(doubts("Np4294967296\n."), "memo_key at byte 1\n");
  EXPECT_EQ(doubts("c\xc3\xa9\nf\n."), "name_text at byte 0\n");
  EXPECT_EQ(doubts("P\xff\n."), "persistent_id_text at byte 0\n");
  EXPECT_EQ(doubts("X\1\0\0\0\xff."s), "text_not_utf8 at byte 0\n");
  EXPECT_EQ(doubts("X\3\0\0\0\xed\xa0\x80."s), "");
}

TEST(Scrutiny, SurvivesEveryPrefix) {
  const std::string bytes = pickle(
      "PROTO 4 FRAME 30 UNICODE 'abc' BININT 5 LONG1 7 GLOBAL 'a' 'b' "
      "BINFLOAT 1.5 LONG_BINPUT 3 STOP");
  for (std::size_t i = 0; i <= bytes.size(); ++i)
    static_cast<void>(
        scrutinize(as_bytes(std::string_view(bytes).substr(0, i))));
}

}  // namespace
}  // namespace postflight
