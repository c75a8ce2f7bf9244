#include "stream/codec/zstd_filter.h"

#include "base/test_files.h"
#include "stream/compressor.h"
#include "stream/cut_source.h"
#include "stream/filter_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

Drained decoded(std::string_view data, const Limits& limits = {}) {
  MemorySource below(as_bytes(data));
  FilterSource source(below, must(make_zstd_decoder(limits)));
  return drain(source);
}

TEST(ZstdDecoder, ReadsARealDump) {
  const std::string dump = test_data("flight/nccl_healthy/nccl_trace_rank_0");
  EXPECT_EQ(decoded(zstd_compressed(dump)), Drained{dump});
  EXPECT_EQ(decoded(zstd_compressed(dump, /*size_known=*/false)),
            Drained{dump});
}

TEST(ZstdDecoder, ReadsConcatenatedEmptyAndSkippableFrames) {
  EXPECT_EQ(decoded(zstd_skippable("about") + zstd_compressed("one ") +
                    zstd_compressed("") + zstd_skippable("") +
                    zstd_compressed("two") + zstd_compressed("")),
            Drained{"one two"});
}

TEST(ZstdDecoder, SaysWhatFollowsTheEnd) {
  const std::string data = zstd_compressed("text");
  EXPECT_EQ(decoded(data + "more"),
            (Drained{"text", "the data at byte 17 is not a zstd frame"}));
  EXPECT_EQ(decoded(data + "mor"),
            (Drained{"text",
                     "the zstd data is truncated after byte 20, decoded to 4 "
                     "bytes; the writer was probably killed"}));
}

// Version 0.7 began its frames with 27 B5 2F FD.
TEST(ZstdDecoder, ReadsNoFormatOfThePast) {
  EXPECT_EQ(decoded("\x27\xb5\x2f\xfd rest"),
            (Drained{"", "the data at byte 0 is not a zstd frame"}));
}

TEST(ZstdDecoder, SaysThatThereIsNothing) {
  EXPECT_EQ(decoded(""), (Drained{"", "no zstd data: the input is empty"}));
}

TEST(ZstdDecoder, ChecksTheChecksum) {
  std::string data = zstd_compressed("text");
  data.back() ^= 1;
  const Drained drained = decoded(data);
  EXPECT_EQ(drained.error,
            "the zstd data is damaged near byte 14, decoded to 4 bytes: "
            "Restored data doesn't match checksum");
}

TEST(ZstdDecoder, RefusesAWindowThatIsTooLarge) {
  const std::string data =
      zstd_compressed(std::string(1 << 20, 'a'), /*size_known=*/false);
  EXPECT_EQ(decoded(data, {.max_window_bytes = 64 << 10}),
            (Drained{"",
                     "a zstd frame near byte 4 needs a window of more than "
                     "the 65536 bytes allowed; give long=17 or more"}));
}

TEST(ZstdDecoder, EveryPrefixFailsAndGivesAPrefix) {
  const std::string text = test_data("ckpt/basic.pt").substr(0, 2000);
  const std::string data = zstd_compressed(text);
  for (std::size_t size = 0; size < data.size(); ++size) {
    const Drained drained = decoded(data.substr(0, size));
    EXPECT_NE(drained.error, "") << size;
    EXPECT_TRUE(text.starts_with(drained.bytes)) << size;
  }
}

// The frame's checksum is what tells.
TEST(ZstdDecoder, AFlippedByteNeverGivesOtherBytes) {
  const std::string text = test_data("ckpt/basic.pt").substr(0, 2000);
  const std::string data = zstd_compressed(text);
  for (std::size_t at = 0; at < data.size(); ++at) {
    std::string flipped = data;
    flipped[at] = static_cast<char>(~flipped[at]);
    const Drained drained = decoded(flipped);
    EXPECT_TRUE(drained.error != "" || drained.bytes == text) << at;
  }
}

RC_GTEST_PROP(ZstdDecoder, GivesTheSameBytesHoweverTheyAreCut,
              (const std::string& first, const std::string& second)) {
  const std::string data = zstd_compressed(first) + zstd_skippable(first) +
                           zstd_compressed(second, /*size_known=*/false);
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::size_t>>(
          rc::gen::inRange<std::size_t>(0, 9)));
  RC_PRE(*std::ranges::max_element(sizes) > 0);
  CutSource below(data, sizes);
  FilterSource source(below, must(make_zstd_decoder()),
                      *rc::gen::inRange<std::size_t>(1, 9));
  const Drained drained = drain(source, *rc::gen::inRange<std::size_t>(1, 9));
  RC_ASSERT(drained.error == "");
  RC_ASSERT(drained.bytes == first + second);
}

}  // namespace
}  // namespace postflight
