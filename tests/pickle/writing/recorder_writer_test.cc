#include "pickle/writing/recorder_writer.h"
#include "pickle/assembler.h"
#include "pickle/builder.h"
#include "pickle/writing/writer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace postflight {
namespace {

std::string recorded(const Value& value) {
  const Result<std::string> result =
      write_pickle(value, {.dialect = Dialect::kRecorder});
  if (!result) {
    ADD_FAILURE() << result.error().message();
    return "";
  }
  return *result;
}

void expect_error(const Value& value, std::string_view message,
                  int protocol = 2) {
  const Result<std::string> result = write_pickle(
      value, {.protocol = protocol, .dialect = Dialect::kRecorder});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kUsage);
  EXPECT_EQ(result.error().message(), message);
}

TEST(RecorderWriter, WritesEveryContainerInOneBatch) {
  Builder builder;
  EXPECT_EQ(recorded(builder.list({builder.list(), builder.dict(),
                                   builder.tuple({}), Value::none()})),
            pickle("PROTO 2 EMPTY_LIST MARK EMPTY_LIST MARK APPENDS"
                   " EMPTY_DICT MARK SETITEMS EMPTY_TUPLE NONE APPENDS"
                   " BINPUT 0 STOP"));
  const std::string bytes = recorded(builder.list(std::vector<Value>(3000)));
  EXPECT_EQ(bytes.size(), 3000u + 8);
}

TEST(RecorderWriter, WritesWideIntegersInEightBytes) {
  Builder builder;
  EXPECT_EQ(recorded(builder.integer(1LL << 31)),
            pickle("PROTO 2 LONG1 '\\x00\\x00\\x00\\x80\\x00\\x00\\x00\\x00'"
                   " STOP"));
  EXPECT_EQ(recorded(builder.integer(-1)), pickle("PROTO 2 BININT -1 STOP"));
}

TEST(RecorderWriter, MemoisesStringsAndTheRoot) {
  Builder builder;
  const Value text = builder.interned("a");
  EXPECT_EQ(recorded(text), pickle("PROTO 2 BINUNICODE 'a' BINPUT 0 STOP"));
  EXPECT_EQ(recorded(builder.tuple({text, builder.tuple({text})})),
            pickle("PROTO 2 BINUNICODE 'a' BINPUT 0 BINGET 0 TUPLE1 TUPLE2"
                   " BINPUT 1 STOP"));
}

TEST(RecorderWriter, MemoisesContainersThatAreSharedAfterTheirParts) {
  Builder builder;
  const Value frame = builder.dict({{builder.string("line"), Value::none()}});
  const Value tuple = builder.tuple(std::vector<Value>(4));
  EXPECT_EQ(
      recorded(builder.list({builder.list(), frame, frame, tuple, tuple})),
      pickle("PROTO 2 EMPTY_LIST MARK EMPTY_LIST MARK APPENDS"
             " EMPTY_DICT MARK BINUNICODE 'line' BINPUT 0 NONE SETITEMS"
             " BINPUT 1 BINGET 1 MARK NONE NONE NONE NONE TUPLE BINPUT 2"
             " BINGET 2 APPENDS BINPUT 3 STOP"));
}

TEST(RecorderWriter, RefusesWhatNoDumpHolds) {
  Builder builder;
  const std::pair<Value, std::string_view> cases[] = {
      {builder.bytes("b"), "bytes"},
      {builder.set(), "sets"},
      {builder.global("m", "n"), "globals"},
      {builder.big_integer(std::string(9, '\x11')), "integers beyond 64 bits"},
      {builder.legacy_string("s"), "Python 2 strings"}};
  for (const auto& [value, what] : cases)
    expect_error(builder.list({value}),
                 "a flight-recorder dump cannot contain " + std::string(what) +
                     "; write the value in the Python dialect");
  const Value list = builder.list();
  builder.append(list, builder.tuple({list}));
  expect_error(
      list,
      "the value contains itself, which a flight-recorder dump cannot; "
      "write it in the Python dialect");
}

TEST(RecorderWriter, RefusesProtocol4) {
  expect_error(Value::none(), "flight recorders write pickle protocol 2, not 4",
               4);
}

TEST(RecorderWriter, RefusesTextsTooLongForTheirOpcode) {
  // Only the count is read before the text is refused.
  const std::uint64_t counted[2] = {1ULL << 32, 0};
  expect_error(
      Value::text(Kind::kString, Value::Prefix::kEight, counted + 1),
      "a string of 4294967296 bytes is too long for pickle protocol 2; use "
      "protocol 4 in the Python dialect");
}

}  // namespace
}  // namespace postflight
