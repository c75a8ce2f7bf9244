#include "base/bytes.h"

#include <limits>

#include <gtest/gtest.h>

namespace postflight {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(Cursor, TakesBytesInOrderAndKnowsWhereItIs) {
  Cursor cursor(as_bytes("\x01\x02\x03\x04rest"));
  const Result<std::uint32_t> number = cursor.little_endian<std::uint32_t>();
  ASSERT_TRUE(number);
  EXPECT_EQ(*number, 0x04030201u);
  EXPECT_EQ(cursor.offset(), 4u);
  const Result<Bytes> rest = cursor.take(4);
  ASSERT_TRUE(rest);
  EXPECT_EQ(as_text(*rest), "rest");
  EXPECT_TRUE(cursor.at_end());
}

TEST(Cursor, RefusesToRunPastTheEnd) {
  Cursor cursor(as_bytes("abc"));
  ASSERT_TRUE(cursor.skip(1));
  const Result<Bytes> taken = cursor.take(kMost);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message(),
            "offset 1: need 18446744073709551615 bytes, 2 left");
  EXPECT_EQ(cursor.remaining(), 2u);
}

TEST(Slice, ChecksWithoutOverflow) {
  const Bytes bytes = as_bytes("abcdef");
  EXPECT_EQ(as_text(*slice(bytes, 2, 3)), "cde");
  EXPECT_EQ(slice(bytes, 6, 0)->size(), 0u);
  const Result<Bytes> outside = slice(bytes, kMost, 2);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().message(),
            "2 bytes at offset 18446744073709551615 are outside the 6 "
            "available");
  EXPECT_FALSE(slice(bytes, 5, kMost));
}

TEST(CheckedArithmetic, SaysNothingOnOverflow) {
  EXPECT_EQ(checked_add<std::uint64_t>(2, 3), 5u);
  EXPECT_EQ(checked_add<std::uint64_t>(kMost, 1), std::nullopt);
  EXPECT_EQ(checked_multiply<std::uint64_t>(1u << 31, 2), 1ull << 32);
  EXPECT_EQ(checked_multiply<std::uint64_t>(kMost, 2), std::nullopt);
}

TEST(Error, IsOnePointerWideAndGathersContext) {
  static_assert(sizeof(Error) == sizeof(void*));
  const Error error =
      Error(ErrorKind::kCorrupt, "ends early").in("rank 3").in("dumps/");
  EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
  EXPECT_EQ(error.message(), "dumps/: rank 3: ends early");
}

}  // namespace
}  // namespace postflight
