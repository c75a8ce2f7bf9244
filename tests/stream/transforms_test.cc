// What holds for every transform and any chain of them.

#include "stream/compressor.h"
#include "stream/round_trip.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

const std::vector<std::string> kAll = {
    "stream.zstd/1",
    "stream.zstd/1.3:level=1,threads=2,long=20",
    "stream.rot13/1",
    "stream.lz4@postflight/1",
    "stream.lz4@postflight/1:level=9",
    "stream.checksum@postflight/1",
    "stream.checksum@postflight/1:block=7",
    "stream.aead@postflight/1",
    "stream.aead@postflight/1:cipher=chacha20-poly1305,block=5"};

// Those that notice any change; rot13 cannot.
const std::vector<std::string> kChecked = {
    "stream.zstd/1", "stream.lz4@postflight/1",
    "stream.checksum@postflight/1:block=100",
    "stream.aead@postflight/1:block=100",
    "stream.aead@postflight/1:cipher=chacha20-poly1305,block=100"};

std::string sample_text() {
  return test_data("ckpt/basic.pt").substr(0, 1500);
}

TEST(Transforms, BringBackARealCheckpoint) {
  const std::string file = test_data("dcp_plain/__0_0.distcp");
  for (const std::string& with : kAll) {
    const TransformChain transforms = chain({with});
    EXPECT_EQ(decoded(transforms, encoded(transforms, file)), Drained{file})
        << with;
    EXPECT_EQ(decoded(transforms, encoded(transforms, "")), Drained{""})
        << with;
  }
}

TEST(Transforms, LargeDataGoesThroughSmallBuffers) {
  std::string data;
  for (int i = 0; data.size() < 9 << 20; ++i)
    data += fmt::format("{} {} ", i, i * 2654435761u);
  for (const std::string& with : kAll) {
    if (with.ends_with("=5") || with.ends_with("=7"))
      continue;  // these take a second each
    const TransformChain transforms = chain({with});
    const std::string once = encoded(transforms, data, {100'000}, 3000);
    EXPECT_EQ(decoded(transforms, once, {5000}, 1000, 700'000), Drained{data})
        << with;
  }
}

TEST(Transforms, EveryPrefixFailsAndGivesAPrefix) {
  const std::string text = sample_text();
  for (const std::string& with : kChecked) {
    const TransformChain transforms = chain({with});
    const std::string data = encoded(transforms, text);
    for (std::size_t size = 0; size < data.size(); ++size) {
      const Drained drained = decoded(transforms, data.substr(0, size));
      EXPECT_NE(drained.error, "") << with << " " << size;
      EXPECT_TRUE(text.starts_with(drained.bytes)) << with << " " << size;
    }
  }
}

TEST(Transforms, AFlippedByteNeverGivesOtherBytes) {
  const std::string text = sample_text();
  for (const std::string& with : kChecked) {
    const TransformChain transforms = chain({with});
    const std::string data = encoded(transforms, text);
    for (std::size_t at = 0; at < data.size(); ++at) {
      std::string flipped = data;
      flipped[at] = static_cast<char>(~flipped[at]);
      const Drained drained = decoded(transforms, flipped);
      // One flip may change nothing that counts, such as a reserved bit.
      EXPECT_TRUE(drained.error != "" || drained.bytes == text)
          << with << " " << at;
      if (with.starts_with("stream.aead") || with.starts_with("stream.check")) {
        EXPECT_NE(drained.error, "") << with << " " << at;
        EXPECT_TRUE(text.starts_with(drained.bytes)) << with << " " << at;
      }
    }
  }
}

TEST(Transforms, TrailingBytesAreNoticed) {
  for (const std::string& with : kChecked) {
    const TransformChain transforms = chain({with});
    const Drained drained =
        decoded(transforms, encoded(transforms, "text") + "more");
    EXPECT_EQ(drained.bytes, "text") << with;
    EXPECT_NE(drained.error, "") << with;
  }
}

RC_GTEST_PROP(Transforms, AnyChainBringsBackItsInput,
              (const std::string& text)) {
  const auto texts = *rc::gen::resize(
      4,
      rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kAll)));
  const auto sizes = [](std::size_t least) {
    return *rc::gen::suchThat(rc::gen::container<std::vector<std::size_t>>(
                                  rc::gen::inRange<std::size_t>(least, 40)),
                              [](const std::vector<std::size_t>& all) {
                                return std::ranges::any_of(
                                    all, [](auto size) { return size > 0; });
                              });
  };
  const TransformChain transforms = chain(texts);
  const std::string data = encoded(transforms, text, sizes(0),
                                   *rc::gen::inRange<std::size_t>(1, 200));
  const Drained drained = decoded(transforms, data, sizes(0),
                                  *rc::gen::inRange<std::size_t>(1, 200),
                                  *rc::gen::inRange<std::size_t>(1, 200));
  RC_ASSERT(drained.error == "");
  RC_ASSERT(drained.bytes == text);
}

// What a writer makes is the same bytes however they reach it, as long as it is
// not told to flush; encryption has a salt and is left out.
RC_GTEST_PROP(Transforms, EncodeTheSameHoweverBytesAreCut, ()) {
  const auto with = *rc::gen::elementOf(kAll);
  RC_PRE(!with.starts_with("stream.aead"));
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::size_t>>(
          rc::gen::inRange<std::size_t>(1, 3000)));
  const std::string text = test_data("dcp_plain/__0_0.distcp");
  const TransformChain transforms = chain({with});
  RC_ASSERT(encoded(transforms, text, sizes) == encoded(transforms, text));
}

}  // namespace
}  // namespace postflight
