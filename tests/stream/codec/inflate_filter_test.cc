#include "stream/codec/inflate_filter.h"

#include "base/test_files.h"
#include "stream/compressor.h"
#include "stream/cut_source.h"
#include "stream/filter_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

Drained inflated(std::string_view data,
                 DeflateFormat format = DeflateFormat::kGzip) {
  MemorySource below(as_bytes(data));
  FilterSource source(below, must(make_inflate_filter(format)));
  return drain(source);
}

TEST(InflateFilter, ReadsARealDump) {
  const std::string dump = test_data("flight/nccl_healthy/nccl_trace_rank_0");
  EXPECT_EQ(inflated(gzipped(dump)), Drained{dump});
  EXPECT_EQ(inflated(zlib_compressed(dump), DeflateFormat::kZlib),
            Drained{dump});
}

TEST(InflateFilter, ReadsSeveralMembersEmptyOnesAndPadding) {
  EXPECT_EQ(inflated(gzipped("one ") + gzipped("") + gzipped("two") +
                     std::string(600, '\0')),
            Drained{"one two"});
}

TEST(InflateFilter, SaysWhatFollowsTheEnd) {
  EXPECT_EQ(
      inflated(gzipped("text") + "more"),
      (Drained{"text",
               "trailing data after the gzip data at byte 24 is not gzip"}));
  EXPECT_EQ(
      inflated(zlib_compressed("text") + "more", DeflateFormat::kZlib),
      (Drained{"text", "bytes follow the end of the zlib data at byte 12"}));
}

TEST(InflateFilter, SaysThatThereIsNothing) {
  EXPECT_EQ(inflated(""), (Drained{"", "no gzip data: the input is empty"}));
  EXPECT_EQ(inflated("", DeflateFormat::kZlib),
            (Drained{"", "no zlib data: the input is empty"}));
}

TEST(InflateFilter, SaysWhereDataBreaksOff) {
  const std::string data = gzipped("text");
  EXPECT_EQ(inflated(data.substr(0, data.size() - 1)),
            (Drained{"text",
                     "the gzip data is truncated after byte 23, decoded to 4 "
                     "bytes; the writer was probably killed"}));
}

TEST(InflateFilter, ChecksTheChecksum) {
  std::string data = gzipped("text");
  data[data.size() - 5] ^= 1;
  EXPECT_EQ(inflated(data),
            (Drained{"text",
                     "the gzip data is damaged near byte 20, decoded to 4 "
                     "bytes: incorrect data check"}));
}

TEST(InflateFilter, EveryPrefixFailsAndGivesAPrefix) {
  const std::string text = test_data("ckpt/basic.pt").substr(0, 2000);
  const std::string data = gzipped(text);
  for (std::size_t size = 0; size < data.size(); ++size) {
    const Drained drained = inflated(data.substr(0, size));
    EXPECT_NE(drained.error, "") << size;
    EXPECT_TRUE(text.starts_with(drained.bytes)) << size;
  }
}

// A flip in the header's time, name or flags changes nothing that counts.
TEST(InflateFilter, AFlippedByteNeverGivesOtherBytes) {
  const std::string text = test_data("ckpt/basic.pt").substr(0, 2000);
  const std::string data = gzipped(text);
  for (std::size_t at = 0; at < data.size(); ++at) {
    std::string flipped = data;
    flipped[at] = static_cast<char>(~flipped[at]);
    const Drained drained = inflated(flipped);
    EXPECT_TRUE(drained.error != "" || drained.bytes == text) << at;
  }
}

RC_GTEST_PROP(InflateFilter, GivesTheSameBytesHoweverTheyAreCut,
              (const std::string& first, const std::string& second)) {
  const std::string data = gzipped(first) + gzipped(second);
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::size_t>>(
          rc::gen::inRange<std::size_t>(0, 9)));
  RC_PRE(*std::ranges::max_element(sizes) > 0);
  CutSource below(data, sizes);
  FilterSource source(below, must(make_inflate_filter(DeflateFormat::kGzip)),
                      *rc::gen::inRange<std::size_t>(1, 9));
  const Drained drained = drain(source, *rc::gen::inRange<std::size_t>(1, 9));
  RC_ASSERT(drained.error == "");
  RC_ASSERT(drained.bytes == first + second);
}

}  // namespace
}  // namespace postflight
