#include "pickle/audit/readers.h"

#include <gtest/gtest.h>

#include "pickle/assembler.h"
#include "pickle/frame.h"

namespace postflight {
namespace {

using namespace std::string_literals;

// "reader: calls" of each that reads it, "reader! why" of the others.
std::string seen(std::string_view bytes) {
  std::string all;
  for (const Reading& reading : read_as_all(as_bytes(bytes), {}).readings) {
    all += std::string(reading.reader) + (reading.refuses ? "!" : ":");
    for (const std::string& call : reading.calls)
      all += " " + call;
    all += "\n";
  }
  return all;
}

TEST(Readers, AgreeOnWhatPicklersWrite) {
  const std::string bytes = pickle(
      "PROTO 2 GLOBAL 'collections' 'OrderedDict' EMPTY_TUPLE REDUCE STOP");
  EXPECT_FALSE(read_as_all(as_bytes(bytes), {}).differ);
  EXPECT_EQ(seen(bytes),
            "c_memory: collections.OrderedDict\n"
            "c_file_old: collections.OrderedDict\n"
            "c_file: collections.OrderedDict\n"
            "python: collections.OrderedDict\n"
            "weights_only: collections.OrderedDict\n"
            "pickletools: collections.OrderedDict\n");
}

TEST(Readers, DifferBehindAFrame) {
  const std::string payload = "cos\nsystem\n(Vid\ntR";
  const std::string bytes = "\x80\4" + frame(3) + "X" +
                            static_cast<char>(payload.size() + 2) +
                            std::string(5, '\0') + payload + ".";
  EXPECT_TRUE(read_as_all(as_bytes(bytes), {}).differ);
  EXPECT_EQ(seen(bytes),
            "c_memory:\nc_file_old: os.system\nc_file!\npython!\n"
            "weights_only!\npickletools:\n");
}

TEST(Readers, DifferAtANameWithoutANewline) {
  EXPECT_EQ(seen("(Vid\nios\nsystemX"),
            "c_memory!\nc_file_old!\nc_file!\npython! os.system\n"
            "weights_only!\npickletools!\n");
}

TEST(Readers, KnowWhatWeightsOnlyAllows) {
  const auto why = [](std::string_view assembly) {
    const std::string bytes = pickle(assembly);
    return read_as_all(as_bytes(bytes), {}).readings[4].why;
  };
  EXPECT_EQ(why("PROTO 2 GLOBAL 'torch' 'FloatTensor' STOP"), "");
  EXPECT_EQ(why("PROTO 2 GLOBAL '__builtin__' 'set' STOP"), "");
  EXPECT_EQ(why("PROTO 2 GLOBAL 'os' 'system' STOP"),
            "byte 2: os.system is not allowed");
  EXPECT_EQ(why("PROTO 4 SHORT_BINUNICODE 'a' STOP"),
            "byte 2: it has no SHORT_BINUNICODE");
}

TEST(Readers, SeeTheSameBytesIfFramesFit) {
  const std::string inside = "]\x94(K\1K\2e.";
  EXPECT_EQ(bytes_behind_frames(
                as_bytes(std::string_view("\x80\4" + frame(9) + inside))),
            "\x80\4" + inside);
}

}  // namespace
}  // namespace postflight
