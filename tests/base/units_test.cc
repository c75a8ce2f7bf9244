#include "base/units.h"

#include <limits>

#include <gtest/gtest.h>

namespace postflight {
namespace {

using namespace std::chrono_literals;

TEST(HumanBytes, UsesTheUnitThatFits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.0 kB");
  EXPECT_EQ(human_bytes(1'440'000'000), "1.4 GB");
  EXPECT_EQ(human_bytes(14'250'000'000), "14.3 GB");
  EXPECT_EQ(human_bytes(350'000'000), "350 MB");
  EXPECT_EQ(human_bytes(std::numeric_limits<std::uint64_t>::max()), "18.4 EB");
}

TEST(HumanBytes, RoundsIntoTheNextUnit) {
  EXPECT_EQ(human_bytes(99'949), "99.9 kB");
  EXPECT_EQ(human_bytes(99'950), "100 kB");
  EXPECT_EQ(human_bytes(999'499), "999 kB");
  EXPECT_EQ(human_bytes(999'500), "1.0 MB");
}

TEST(HumanDuration, UsesTheUnitsThatFit) {
  EXPECT_EQ(human_duration(0ns), "0 ns");
  EXPECT_EQ(human_duration(999ns), "999 ns");
  EXPECT_EQ(human_duration(80us), "80 us");
  EXPECT_EQ(human_duration(350ms), "350 ms");
  EXPECT_EQ(human_duration(4200ms), "4.2 s");
  EXPECT_EQ(human_duration(5s), "5 s");
  EXPECT_EQ(human_duration(42s), "42 s");
  EXPECT_EQ(human_duration(125s), "2 min 5 s");
  EXPECT_EQ(human_duration(10min), "10 min");
  EXPECT_EQ(human_duration(3h + 10min), "3 h 10 min");
  EXPECT_EQ(human_duration(52h), "2 d 4 h");
}

TEST(HumanDuration, RoundsIntoTheNextUnit) {
  EXPECT_EQ(human_duration(999'600ns), "1 ms");
  EXPECT_EQ(human_duration(999'600us), "1 s");
  EXPECT_EQ(human_duration(9'960ms), "10 s");
  EXPECT_EQ(human_duration(59'600ms), "1 min");
  EXPECT_EQ(human_duration(3'599'600ms), "1 h");
  EXPECT_EQ(human_duration(24h - 1s), "1 d");
}

TEST(HumanDuration, SaysWhatIsNegative) {
  EXPECT_EQ(human_duration(-350ms), "-350 ms");
  EXPECT_EQ(human_duration(std::chrono::nanoseconds::min()), "-106752 d");
  EXPECT_EQ(human_duration(std::chrono::nanoseconds::max()), "106752 d");
}

}  // namespace
}  // namespace postflight
