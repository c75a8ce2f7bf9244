#include "stream/extension/transform_chain.h"

#include "stream/codec/built_in.h"
#include "stream/compressor.h"
#include "stream/extension/transform_plugin.h"
#include "stream/round_trip.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;

TEST(Rot13, SwapsTheCaseOfAsciiLetters) {
  const TransformChain rot13 = chain({"stream.rot13/1"});
  std::string all;
  for (int c = 0; c < 256; ++c)
    all += static_cast<char>(c);
  std::string expected = all;
  for (int i = 0; i < 26; ++i)
    std::swap(expected[static_cast<std::size_t>('a' + i)],
              expected[static_cast<std::size_t>('A' + i)]);
  EXPECT_EQ(encoded(rot13, all), expected);
  EXPECT_EQ(encoded(rot13, "Hello, zip PK\3\4"), "hELLO, ZIP pk\3\4");
}

// An item of a checkpoint that torch wrote through its example.
TEST(Rot13, ReadsWhatTorchWroteAndSeeks) {
  const std::string file = test_data("dcp_rot13/__0_0.distcp");
  ASSERT_EQ(file.substr(0, 4), "pk\3\4");
  MemorySource below(as_bytes(file));
  const TransformChain rot13 = chain({"stream.rot13/1"});
  const std::unique_ptr<Source> source = must(rot13.transform_from(below));
  const std::string whole = drain(*source).bytes;
  EXPECT_EQ(whole.substr(0, 4), "PK\3\4");
  EXPECT_NE(whole.find("archive/data.pkl"), whole.npos);
  ASSERT_TRUE(source->seekable());
  ASSERT_TRUE(source->seek(30));
  EXPECT_EQ(drain(*source).bytes, whole.substr(30));
}

TEST(TransformChain, TakesTransformsFromTheFirstToTheDisk) {
  const TransformChain transforms =
      chain({"stream.zstd/1,stream.checksum@postflight/1"});
  EXPECT_THAT(transforms.descriptors(),
              ElementsAre("stream.zstd/1", "stream.checksum@postflight/1"));
  const std::string data = encoded(transforms, "text");
  EXPECT_EQ(data.substr(0, 4), "PFc1");
  EXPECT_EQ(data.substr(8, 4), "\x28\xb5\x2f\xfd");
  EXPECT_EQ(decoded(transforms, data), Drained{"text"});
}

TEST(TransformChain, OfNothingChangesNothing) {
  EXPECT_EQ(encoded(chain({}), "text"), "text");
  EXPECT_EQ(decoded(chain({}), "text"), Drained{"text"});
}

TEST(TransformChain, LeavesTheSinkOpenForAnother) {
  MemorySink below;
  for (const char* text : {"one ", "two"}) {
    const std::unique_ptr<Sink> sink =
        must(chain({"stream.zstd/1"}).transform_to(below));
    ASSERT_TRUE(sink->write(as_bytes(text)));
    EXPECT_EQ(sink->tell(), std::string_view(text).size());
    ASSERT_TRUE(sink->finish());
  }
  EXPECT_EQ(decoded(chain({"stream.zstd/1"}), below.contents()),
            Drained{"one two"});
}

TEST(TransformChain, AFlushMakesWhatWasWrittenReadable) {
  for (const char* with :
       {"stream.zstd/1", "stream.zstd/1:threads=2", "stream.lz4@postflight/1",
        "stream.checksum@postflight/1", "stream.rot13/1"}) {
    MemorySink below;
    const TransformChain transforms = chain({with, "stream.zstd/1"});
    const std::unique_ptr<Sink> sink = must(transforms.transform_to(below));
    ASSERT_TRUE(sink->write(as_bytes("text")));
    ASSERT_TRUE(sink->flush());
    // Not finished, so there is an error behind it.
    EXPECT_EQ(decoded(transforms, below.contents()).bytes, "text") << with;
  }
}

TEST(TransformChain, ReadsWhatFollowsWith) {
  const std::vector<TransformRequest> requests =
      with({"a/1,b/1", "c/1:x=1,y=2", ""});
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[1].descriptor, "b/1");
  EXPECT_EQ(requests[2].descriptor, "c/1");
  EXPECT_EQ(requests[2].parameters.all()[1].second, "2");
  EXPECT_EQ(requests[3].descriptor, "");
}

TEST(Zstd, LongWindowsNeedToBeAllowed) {
  // Far enough apart that only a window of 256 MiB would reach back.
  const std::string data =
      encoded(chain({"stream.zstd/1:long=28,level=1"}), std::string(1, 'a'));
  EXPECT_EQ(decoded(chain({"stream.zstd/1"}), data),
            (Drained{"",
                     "a zstd frame near byte 4 needs a window of more than "
                     "the 134217728 bytes allowed; give long=28 or more"}));
  EXPECT_EQ(decoded(chain({"stream.zstd/1:long=28"}), data), Drained{"a"});
}

TEST(Zstd, SeveralThreadsMakeTheSameBytes) {
  std::string text;
  for (int i = 0; text.size() < 9 << 20; ++i)
    text += fmt::format("{} ", i * i);
  const std::string two =
      encoded(chain({"stream.zstd/1:threads=2,level=1"}), text);
  EXPECT_EQ(two, encoded(chain({"stream.zstd/1:threads=5,level=1"}), text,
                         {1000, 70'000}));
  EXPECT_LT(two.size(), text.size() / 2);
  EXPECT_EQ(decoded(chain({"stream.zstd/1"}), two), Drained{text});
}

class Plugin : public testing::Test {
 protected:
  Plugin() : registry_(built_in_registry()) {}

  ExtensionRegistry registry_;
};

TEST_F(Plugin, AddsATransform) {
  ASSERT_EQ(message_of(load_plugin(XOR15_PLUGIN, registry_)), "no error");
  const TransformChain xor15 =
      must(TransformChain::make(registry_, with({"stream.xor15@corpus/1"})));
  EXPECT_EQ(encoded(xor15, "\x15text"), std::string("\0apma", 5));
  EXPECT_EQ(decoded(xor15, encoded(xor15, "text", {1}, 1), {1}, 1, 1),
            Drained{"text"});
  EXPECT_EQ(message_of(load_plugin(XOR15_PLUGIN, registry_)),
            "plug-in " XOR15_PLUGIN
            ": there already is a transform stream.xor15@corpus");
}

// Saved by torch with [rot13, xor15]; its metadata lists them as below, which
// torch itself then reads in the wrong order.
TEST_F(Plugin, ReadsAChainThatTorchWrote) {
  ASSERT_EQ(message_of(load_plugin(XOR15_PLUGIN, registry_)), "no error");
  const TransformChain stored = must(TransformChain::make(
      registry_, with({"stream.xor15@corpus/1,stream.rot13/1"})));
  const std::string whole =
      decoded(stored, test_data("dcp_chain/__0_0.distcp")).bytes;
  EXPECT_EQ(whole.substr(0, 4), "PK\3\4");
  EXPECT_NE(whole.find("archive/data.pkl"), whole.npos);
}

TEST_F(Plugin, SaysWhatIsWrongWithIt) {
  ASSERT_EQ(message_of(load_plugin(XOR15_PLUGIN, registry_)), "no error");
  const TransformChain told = must(
      TransformChain::make(registry_, with({"stream.xor15@corpus/1:a=b"})));
  MemorySink below;
  EXPECT_EQ(message_of(told.transform_to(below)),
            "stream.xor15@corpus: it has no parameters");
  EXPECT_EQ(message_of(registry_.from_descriptor("stream.xor15@corpus/2")),
            "version 2 of stream.xor15@corpus is unsupported; use 1");
  EXPECT_EQ(message_of(load_plugin("no_such.so", registry_)).substr(0, 34),
            "cannot load the plug-in no_such.so");
  EXPECT_EQ(message_of(load_plugin(BROKEN_PLUGIN, registry_)), "no error");
}

// Each of these breaks the interface in its own way.
TEST_F(Plugin, IsNotTrusted) {
  ASSERT_EQ(message_of(load_plugin(BROKEN_PLUGIN, registry_)), "no error");
  const auto error = [&](const std::string& name) {
    const TransformChain broken = must(TransformChain::make(
        registry_, with({"stream." + name + "@broken/1"})));
    return decoded(broken, "text").error;
  };
  EXPECT_EQ(error("stuck"),
            "the plug-in for stream.stuck@broken makes no progress");
  EXPECT_EQ(error("lazy"),
            "the plug-in for stream.lazy@broken asks for input and leaves "
            "what it has");
  EXPECT_EQ(error("hasty"),
            "the plug-in for stream.hasty@broken ends before its input does");
  EXPECT_EQ(error("untidy"),
            "the plug-in for stream.untidy@broken left its buffers in "
            "disorder");
  EXPECT_EQ(error("odd"),
            "the plug-in for stream.odd@broken returns an invalid state");
  EXPECT_EQ(error("failing"), "stream.failing@broken: it never works");
}

}  // namespace
}  // namespace postflight
