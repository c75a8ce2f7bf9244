#include "pickle/audit/expansion.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "pickle/assembler.h"
#include "pickle/machine.h"

namespace postflight {
namespace {

std::uint64_t count_of(std::string_view bytes) {
  Machine machine;
  const Result<Pickle> loaded = machine.load(as_bytes(bytes));
  return loaded ? expanded_count(loaded->root) : 0;
}

std::string laughs(int levels) {
  std::string bytes = "]K\1a";
  for (int i = 0; i < levels; ++i)
    bytes += "2\x86";
  return bytes + ".";
}

TEST(Expansion, CountsValues) {
  EXPECT_EQ(count_of("N."), 1u);
  EXPECT_EQ(count_of(pickle("BININT1 1 BININT1 2 TUPLE2 STOP")), 3u);
}

TEST(Expansion, CountsSharedValuesEachTime) {
  EXPECT_EQ(count_of(laughs(1)), 5u);
  EXPECT_EQ(count_of(laughs(10)), (std::uint64_t{1} << 10) * 3 - 1);
}

TEST(Expansion, IsLinearAndSaturates) {
  EXPECT_GT(count_of(laughs(60)), std::uint64_t{1} << 60);
  EXPECT_EQ(count_of(laughs(5000)), std::numeric_limits<std::uint64_t>::max());
}

TEST(Expansion, EndsAtCycles) {
  EXPECT_EQ(count_of("]2a."), 2u);
}

}  // namespace
}  // namespace postflight
