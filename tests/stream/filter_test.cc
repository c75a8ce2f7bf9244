#include "stream/filter.h"

#include "stream/cut_source.h"
#include "stream/filter_stream.h"
#include "stream/memory_stream.h"

#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

// Adds one to each byte; fails at a 'z' after giving out what came before.
class NextLetter : public Filter {
 public:
  Result<FilterState> step(Bytes& in, std::span<std::byte>& out,
                           FilterStage stage) override {
    while (!in.empty() && !out.empty()) {
      if (in.front() == std::byte{'z'})
        return fail(ErrorKind::kCorrupt, "a z");
      out.front() = static_cast<std::byte>(static_cast<int>(in.front()) + 1);
      in = in.subspan(1);
      out = out.subspan(1);
    }
    if (!in.empty())
      return FilterState::kNeedsRoom;
    return stage == FilterStage::kLast ? FilterState::kDone
                                       : FilterState::kNeedsInput;
  }
  bool keeps_places() const override { return true; }
};

// Never gives anything out nor ends.
class Stuck : public Filter {
 public:
  Result<FilterState> step(Bytes& in, std::span<std::byte>&,
                           FilterStage) override {
    in = {};
    return FilterState::kNeedsInput;
  }
};

TEST(MemorySource, ReadsToItsEndAndSeeks) {
  MemorySource source(as_bytes("abcdef"));
  EXPECT_EQ(drain(source, 4), (Drained{"abcdef"}));
  EXPECT_EQ(source.tell(), 6u);
  ASSERT_TRUE(source.seek(4));
  EXPECT_EQ(drain(source), (Drained{"ef"}));
  ASSERT_TRUE(source.seek(~std::uint64_t{0}));
  EXPECT_EQ(drain(source), (Drained{""}));
}

TEST(MemorySource, LendsWhatIsLeft) {
  MemorySource source(as_bytes("abcdef"));
  ASSERT_TRUE(source.seek(4));
  EXPECT_EQ(as_text(*source.take_rest()), "ef");
  EXPECT_EQ(source.tell(), 6u);
  EXPECT_EQ(drain(source), (Drained{""}));
  ASSERT_TRUE(source.seek(9));
  EXPECT_EQ(as_text(*source.take_rest()), "");
  EXPECT_EQ(source.tell(), 9u);
  EXPECT_FALSE(CutSource("abc", {1}).take_rest());
}

TEST(Source, FillsAcrossPiecesButDoesNotWait) {
  CutSource pieces("abcdef", {1, 2});
  std::string text(5, ' ');
  EXPECT_EQ(*read_fully(pieces, std::as_writable_bytes(std::span(text))), 5u);
  EXPECT_EQ(text, "abcde");
  EXPECT_EQ(*read_fully(pieces, std::as_writable_bytes(std::span(text))), 1u);
  CutSource slow("abcdef", {1, 0});
  const Result<std::size_t> count =
      read_fully(slow, std::as_writable_bytes(std::span(text)));
  ASSERT_FALSE(count);
  EXPECT_EQ(count.error().message(), "reading byte 1 would block");
}

TEST(Source, SkipsAndNoticesTheEnd) {
  const std::string text(200'000, 'a');
  MemorySource memory(as_bytes(text));
  EXPECT_TRUE(*skip(memory, 150'000));
  EXPECT_EQ(memory.tell(), 150'000u);
  EXPECT_FALSE(*skip(memory, 100'000));
  EXPECT_FALSE(*skip(memory, ~std::uint64_t{0}));
  CutSource pieces(text, {70'000});
  EXPECT_TRUE(*skip(pieces, 150'000));
  EXPECT_EQ(pieces.tell(), 150'000u);
  EXPECT_FALSE(*skip(pieces, 100'000));
}

TEST(Source, SaysThatItCannotSeek) {
  CutSource source("abc", {1});
  EXPECT_FALSE(source.seekable());
  const Result<> sought = source.seek(1);
  ASSERT_FALSE(sought);
  EXPECT_EQ(sought.error().message(),
            "this stream can only be read front to back");
}

TEST(FilterSource, TellsWaitingFromTheEnd) {
  CutSource below("abc", {2, 0, 0});
  FilterSource source(below, std::make_unique<NextLetter>());
  EXPECT_EQ(drain(source), (Drained{"bcd", "", 4}));
  EXPECT_EQ(source.tell(), 3u);
}

TEST(FilterSource, GivesOutWhatLiesBeforeTheDamage) {
  MemorySource below(as_bytes("abzc"));
  FilterSource source(below, std::make_unique<NextLetter>());
  EXPECT_EQ(drain(source), (Drained{"bc", "a z"}));
  EXPECT_EQ(drain(source), (Drained{"", "a z"}));
}

TEST(FilterSource, EndsAFilterThatGetsNowhere) {
  MemorySource below(as_bytes("abc"));
  FilterSource source(below, std::make_unique<Stuck>());
  EXPECT_EQ(drain(source), (Drained{"", "the stream is truncated"}));
}

TEST(FilterSource, SeeksWhereEachByteKeepsItsPlace) {
  MemorySource below(as_bytes("..abcdefgh"));
  ASSERT_TRUE(below.seek(2));
  FilterSource source(below, std::make_unique<NextLetter>(), 3);
  std::byte first[2];
  EXPECT_EQ(*read_fully(source, first), 2u);
  ASSERT_TRUE(source.seekable());
  ASSERT_TRUE(source.seek(5));
  EXPECT_EQ(drain(source), (Drained{"ghi"}));
  ASSERT_TRUE(source.seek(0));
  EXPECT_EQ(drain(source), (Drained{"bcdefghi"}));
  FilterSource opaque(below, std::make_unique<Stuck>());
  EXPECT_FALSE(opaque.seekable());
  EXPECT_FALSE(opaque.seek(0));
}

TEST(FilterSink, PassesEverythingOnAndTakesNothingAfterItsEnd) {
  const std::string text = "abc";
  MemorySink below;
  FilterSink sink(below, std::make_unique<NextLetter>(), 2);
  ASSERT_TRUE(sink.write(as_bytes(text)));
  ASSERT_TRUE(sink.flush());
  EXPECT_EQ(below.contents(), "bcd");
  EXPECT_EQ(text, "abc");
  EXPECT_EQ(sink.tell(), 3u);
  ASSERT_TRUE(sink.finish());
  const Result<> late = sink.write(as_bytes(text));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message(), "the stream is already finished");
}

RC_GTEST_PROP(FilterSource, GivesTheSameBytesHoweverTheyAreCut,
              (const std::string& text)) {
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::size_t>>(
          rc::gen::inRange<std::size_t>(1, 9)));
  const auto buffer = *rc::gen::inRange<std::size_t>(1, 9);
  const auto piece = *rc::gen::inRange<std::size_t>(1, 9);
  MemorySource whole_below(as_bytes(text));
  FilterSource whole(whole_below, std::make_unique<NextLetter>());
  CutSource cut_below(text, sizes);
  FilterSource cut(cut_below, std::make_unique<NextLetter>(), buffer);
  RC_ASSERT(drain(cut, piece) == drain(whole));
}

}  // namespace
}  // namespace postflight
