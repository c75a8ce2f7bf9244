#include "base/hash.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/hash_index.h"

namespace postflight {
namespace {

TEST(Hash, TellsTextsOfAllLengthsApart) {
  std::set<std::uint64_t> seen;
  std::string text;
  std::size_t count = 0;
  for (int length = 0; length < 300; ++length) {
    seen.insert(hash_text(text));
    ++count;
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string other = text;
      other[i] ^= 1;
      seen.insert(hash_text(other));
      ++count;
    }
    text += static_cast<char>('a' + length % 26);
  }
  EXPECT_EQ(seen.size(), count);
}

TEST(Hash, GoesOnWithNumbers) {
  const std::uint64_t hash = hash_text("weight");
  EXPECT_EQ(hash_on(hash, 1), hash_on(hash, 1));
  EXPECT_NE(hash_on(hash, 1), hash_on(hash, 2));
  EXPECT_NE(hash_on(hash_on(hash, 1), 2), hash_on(hash_on(hash, 2), 1));
}

// A constant that undoes what came before would show here as one hash for all.
TEST(Hash, HasNoWordThatUndoesWhatCameBefore) {
  for (const std::uint64_t word :
       {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0xd1b54a32d192ed03},
        std::uint64_t{0x9e3779b97f4a7c15}}) {
    std::string tail(reinterpret_cast<const char*>(&word), sizeof(word));
    tail += "12345678";
    EXPECT_NE(hash_text(std::string(16, 'a') + tail),
              hash_text(std::string(16, 'b') + tail));
  }
}

TEST(HashIndex, FindsTheFirstOfThoseThatAreWanted) {
  HashIndex index;
  EXPECT_TRUE(index.is_empty());
  EXPECT_EQ(index.find(1, [](std::uint32_t) { return true; }),
            HashIndex::kNone);
  // All end up in few places, and the table grows several times.
  for (std::uint32_t i = 0; i < 1000; ++i)
    index.add(62 + i % 4, i);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(index.find(62 + i, [](std::uint32_t) { return true; }), i);
    EXPECT_EQ(index.find(62 + i, [&](std::uint32_t at) { return at > 500; }),
              501 + (i + 3) % 4);
  }
  EXPECT_EQ(index.find(66, [](std::uint32_t) { return true; }),
            HashIndex::kNone);
}

}  // namespace
}  // namespace postflight
