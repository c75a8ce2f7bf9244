#include "base/arena.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/pointer_map.h"

namespace postflight {
namespace {

TEST(Arena, HandsOutPiecesThatDoNotOverlap) {
  Arena arena;
  std::vector<std::span<std::uint64_t>> pieces;
  for (std::size_t i = 1; i < 3000; i += 7) {
    std::uint64_t* const piece = arena.allocate<std::uint64_t>(i * 3);
    std::fill_n(piece, i * 3, i);
    pieces.push_back({piece, i * 3});
  }
  std::size_t expected = 1;
  for (const std::span<std::uint64_t> piece : pieces) {
    for (const std::uint64_t value : piece)
      ASSERT_EQ(value, expected);
    expected += 7;
  }
}

TEST(Arena, ReusesItsMemoryAfterReset) {
  Arena arena;
  const auto fill = [&arena] {
    for (int i = 0; i < 10'000; ++i)
      arena.allocate<std::uint64_t>(4);
  };
  fill();
  const std::uint64_t reserved = arena.reserved_bytes();
  for (int round = 0; round < 5; ++round) {
    arena.reset();
    fill();
  }
  EXPECT_EQ(arena.reserved_bytes(), reserved);
}

TEST(Arena, GivesLargePiecesBackOnReset) {
  Arena arena;
  arena.allocate<std::uint64_t>(10'000'000);
  EXPECT_GE(arena.reserved_bytes(), 80'000'000u);
  arena.reset();
  EXPECT_LT(arena.reserved_bytes(), 1'000'000u);
}

TEST(Arena, StartsWithWhatIsExpected) {
  Arena arena;
  arena.expect(1'000'000);
  EXPECT_EQ(arena.reserved_bytes(), 1'000'000u);
  for (int i = 0; i < 100; ++i)
    arena.allocate<std::uint64_t>(1000);
  EXPECT_EQ(arena.reserved_bytes(), 1'000'000u);
}

TEST(PointerMap, KeepsANumberForEachAddress) {
  PointerMap map;
  std::vector<int> addresses(100'000);
  for (std::size_t i = 0; i < addresses.size(); ++i)
    map[&addresses[i]] = static_cast<std::uint32_t>(i + 1);
  for (std::size_t i = 0; i < addresses.size(); ++i)
    ASSERT_EQ(map.find(&addresses[i]), i + 1);
  EXPECT_EQ(map.find(&map), 0u);
  EXPECT_EQ(PointerMap().find(&map), 0u);
}

}  // namespace
}  // namespace postflight
