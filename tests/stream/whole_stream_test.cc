#include "stream/whole_stream.h"

#include "base/test_files.h"
#include "stream/cut_source.h"

#include <string>

#include <gtest/gtest.h>

namespace postflight {
namespace {

TEST(WholeStream, ReadsToTheEndWhateverWasExpected) {
  std::string text;
  while (text.size() < 1'000'000)
    text += std::to_string(text.size());
  for (const std::uint64_t expected :
       {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{text.size()},
        std::uint64_t{5'000'000}}) {
    CutSource source(text, {70'000});
    EXPECT_EQ(
        as_text(must(WholeStream::read(source, expected, 1 << 24)).bytes()),
        text)
        << expected;
  }
}

TEST(WholeStream, OfNothingIsEmpty) {
  MemorySource source({});
  EXPECT_EQ(must(WholeStream::read(source, 0, 100)).bytes().size(), 0u);
}

TEST(WholeStream, RefusesMoreThanAllowed) {
  const std::string text(101, 'a');
  MemorySource more(as_bytes(text));
  EXPECT_EQ(message_of(WholeStream::read(more, ~std::uint64_t{0}, 100)),
            "it decodes to more than the 100 bytes allowed "
            "(max_inflated_bytes)");
  MemorySource enough(as_bytes(text).first(100));
  EXPECT_EQ(must(WholeStream::read(enough, 0, 100)).bytes().size(), 100u);
  MemorySource any(as_bytes(text));
  EXPECT_EQ(must(WholeStream::read(any, 0, ~std::uint64_t{0})).bytes().size(),
            101u);
}

TEST(WholeStream, PassesAnErrorOn) {
  CutSource source("abc", {1, 0});
  EXPECT_EQ(message_of(WholeStream::read(source, 0, 100)),
            "reading byte 1 would block");
}

}  // namespace
}  // namespace postflight
