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
  RC_ASSERT(decoded_whole(transforms, data) == Drained{text});
}

// One change to bytes, wherever and of whatever kind.
std::string damaged(std::string data) {
  const auto place = [&] {
    return *rc::gen::inRange<std::size_t>(0, data.size() + 1);
  };
  std::size_t begin = place();
  std::size_t end = place();
  if (begin > end)
    std::swap(begin, end);
  const std::string part = data.substr(begin, end - begin);
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return data.substr(0, end);
    case 1:
      return data.substr(0, begin) + data.substr(end);
    case 2:
      return data.substr(0, end) + part + data.substr(end);
    case 3: {
      // Two neighbours change places.
      const std::size_t middle = begin + part.size() / 2;
      std::rotate(data.begin() + static_cast<std::ptrdiff_t>(begin),
                  data.begin() + static_cast<std::ptrdiff_t>(middle),
                  data.begin() + static_cast<std::ptrdiff_t>(end));
      return data;
    }
    default:
      if (begin < data.size())
        data[begin] =
            static_cast<char>(data[begin] ^ 1 << *rc::gen::inRange(0, 8));
      return data;
  }
}

RC_GTEST_PROP(Transforms, NoDamageGoesUnnoticedBehindASeal,
              (const std::string& text)) {
  auto texts = *rc::gen::resize(3, rc::gen::container<std::vector<std::string>>(
                                       rc::gen::elementOf(kAll)));
  texts.push_back(*rc::gen::elementOf(std::vector<std::string>{
      "stream.checksum@postflight/1:block=7", "stream.aead@postflight/1",
      "stream.aead@postflight/1:cipher=chacha20-poly1305,block=5"}));
  const TransformChain transforms = chain(texts);
  const std::string data = encoded(transforms, text);
  const std::string changed = damaged(data);
  RC_PRE(changed != data);
  for (const Drained& drained :
       {decoded(transforms, changed), decoded_whole(transforms, changed)}) {
    RC_ASSERT(drained.error != "");
    RC_ASSERT(text.starts_with(drained.bytes));
  }
}

// Bytes that are read where they lie, with room for everything, take other
// ways than those that come and go in pieces.
RC_GTEST_PROP(Transforms, DamageComesToTheSameWholeAndInPieces,
              (const std::string& text)) {
  const TransformChain transforms = chain({*rc::gen::elementOf(kAll)});
  const std::string changed =
      damaged(encoded(transforms, text + sample_text()));
  const Drained whole = decoded_whole(transforms, changed);
  const Drained pieces = decoded(transforms, changed, {11}, 17, 100);
  // Near which byte the damage is depends on what was at hand.
  RC_ASSERT(pieces.bytes == whole.bytes);
  RC_ASSERT(pieces.error.empty() == whole.error.empty());
}

RC_GTEST_PROP(Transforms, NothingIsReadWithAnotherKey,
              (const std::string& text)) {
  const SecretKey other = must(SecretKey::from_hex(std::string(64, '7')));
  const auto with = *rc::gen::elementOf(std::vector<std::string>{
      "stream.aead@postflight/1",
      "stream.aead@postflight/1:cipher=chacha20-poly1305,block=5"});
  const std::string data = encoded(chain({"stream.zstd/1", with}), text);
  TransformSettings settings;
  settings.key = &other;
  const Drained drained =
      decoded_whole(chain({"stream.zstd/1", with}, settings), data);
  RC_ASSERT(drained.bytes == "");
  RC_ASSERT(drained.error.find("the key is wrong") != drained.error.npos);
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
