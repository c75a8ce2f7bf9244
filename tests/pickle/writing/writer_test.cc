#include "pickle/writing/writer.h"
#include "pickle/assembler.h"
#include "pickle/builder.h"
#include "pickle/machine.h"
#include "pickle/same_graph.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace postflight {
namespace {

std::string written(const Value& value, const WriteOptions& options = {}) {
  const Result<std::string> result = write_pickle(value, options);
  if (!result) {
    ADD_FAILURE() << result.error().message();
    return "";
  }
  return *result;
}

void expect_error(const Value& value, const WriteOptions& options,
                  ErrorKind kind, std::string_view message) {
  const Result<std::string> result = write_pickle(value, options);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), kind);
  EXPECT_EQ(result.error().message(), message);
}

TEST(Writer, ChoosesTheShortestInteger) {
  Builder builder;
  std::vector<Value> numbers;
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{255}, std::int64_t{256},
        std::int64_t{65535}, std::int64_t{65536}, std::int64_t{-1},
        std::int64_t{2147483647}, std::int64_t{2147483648},
        std::int64_t{-2147483648}, std::int64_t{-2147483649}})
    numbers.push_back(builder.integer(number));
  EXPECT_EQ(written(builder.list(numbers)),
            pickle("PROTO 2 EMPTY_LIST BINPUT 0 MARK BININT1 0 BININT1 255"
                   " BININT2 256 BININT2 65535 BININT 65536 BININT -1"
                   " BININT 2147483647 LONG1 '\\x00\\x00\\x00\\x80\\x00'"
                   " BININT -2147483648 LONG1 '\\xff\\xff\\xff\\x7f\\xff'"
                   " APPENDS STOP"));
}

TEST(Writer, WritesWideIntegersInEightOrMoreBytes) {
  Builder builder;
  EXPECT_EQ(
      written(builder.integer(-(std::int64_t{1} << 62) * 2)),
      pickle("PROTO 2 LONG1 '\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80' STOP"));
  const std::string big(255, '\x11');
  EXPECT_EQ(written(builder.big_integer(big)), "\x80\x02\x8a\xff" + big + ".");
  const std::string bigger(256, '\x11');
  EXPECT_EQ(written(builder.big_integer(bigger)),
            std::string("\x80\x02\x8b\0\x01\0\0", 7) + bigger + ".");
}

TEST(Writer, SharesByIdentityNotByText) {
  Builder builder;
  const Value same = builder.interned("a");
  EXPECT_EQ(written(builder.list({same, same, builder.string("a")})),
            pickle("PROTO 2 EMPTY_LIST BINPUT 0 MARK BINUNICODE 'a' BINPUT 1"
                   " BINGET 1 BINUNICODE 'a' BINPUT 2 APPENDS STOP"));
}

TEST(Writer, KnowsAnEmptyTextFromWhatLiesBehindIt) {
  // Both may have the same address: the text takes no memory.
  Builder builder;
  const Value empty = builder.string("");
  const Value behind = builder.list();
  EXPECT_EQ(written(builder.tuple({empty, behind})),
            pickle("PROTO 2 BINUNICODE '' BINPUT 0 EMPTY_LIST BINPUT 1 TUPLE2"
                   " BINPUT 2 STOP"));
}

TEST(Writer, NumbersTheMemoBeyondOneByte) {
  Builder builder;
  const Value root = builder.list();
  for (int i = 0; i < 300; ++i)
    builder.append(root, builder.list());
  builder.append(root, root.items()[254]);
  builder.append(root, root.items()[255]);
  const std::string bytes = written(root);
  EXPECT_NE(bytes.find(pickle("EMPTY_LIST BINPUT 255 EMPTY_LIST LONG_BINPUT "
                              "256")),
            bytes.npos);
  EXPECT_TRUE(
      bytes.ends_with(pickle("BINGET 255 LONG_BINGET 256 APPENDS STOP")));
}

TEST(Writer, WritesBatchesOfAThousandAsPythonDoes) {
  Builder builder;
  const auto count = [](std::string_view bytes, char opcode) {
    return std::count(bytes.begin(), bytes.end(), opcode);
  };
  const Value object = builder.reduce(builder.global("", ""), Value::none());
  for (const std::size_t size : {1u, 2u, 1000u, 1001u, 2000u}) {
    SCOPED_TRACE(size);
    const std::vector<Value> nones(size);
    const std::vector<Pair> pairs(size);
    Object::More more;
    more.items = *builder.list(nones).growing_items();
    more.pairs = *builder.dict(pairs).growing_pairs();
    object.mutable_object()->more = &more;
    const std::string list = written(builder.list(nones));
    const std::string dict = written(builder.dict(pairs));
    const std::string from_iterators = written(object);
    // A list's last batch may have one item, a dict's none at all.
    const auto full = static_cast<std::ptrdiff_t>(size / 1000);
    const bool one_left = size % 1000 == 1;
    EXPECT_EQ(count(list, 'e'), size == 1 ? 0 : full + (size % 1000 != 0));
    EXPECT_EQ(count(list, 'a'), size == 1);
    EXPECT_EQ(count(dict, 'u'), size == 1 ? 0 : full + 1);
    EXPECT_EQ(count(dict, 's'), size == 1);
    EXPECT_EQ(count(from_iterators, 'e'),
              full + (size % 1000 != 0 && !one_left));
    EXPECT_EQ(count(from_iterators, 'a'), one_left);
    EXPECT_EQ(count(from_iterators, 'u'),
              full + (size % 1000 != 0 && !one_left));
    EXPECT_EQ(count(from_iterators, 's'), one_left);
  }
}

TEST(Writer, WritesAnObjectInPythonsOrder) {
  Builder builder;
  const Value object =
      builder.new_object(builder.global("m", "T"), builder.tuple({}));
  builder.add_state(object, Value::small(5));
  builder.set_item(object, Value::small(3), Value::small(4));
  builder.append(object, Value::small(1));
  builder.append(object, Value::small(2));
  EXPECT_EQ(written(object),
            pickle("PROTO 2 GLOBAL 'm' 'T' BINPUT 0 EMPTY_TUPLE NEWOBJ BINPUT 1"
                   " MARK BININT1 1 BININT1 2 APPENDS"
                   " BININT1 3 BININT1 4 SETITEM BININT1 5 BUILD STOP"));
}

TEST(Writer, SharesTheNamesOfGlobalsInProtocol4) {
  Builder builder;
  EXPECT_EQ(
      written(builder.tuple({builder.global("m", "A"), builder.global("m", "B"),
                             builder.global("m", "A"), builder.interned("B")}),
              {.protocol = 4}),
      pickle("PROTO 4 FRAME 26 MARK"
             " SHORT_BINUNICODE 'm' MEMOIZE SHORT_BINUNICODE 'A' MEMOIZE"
             " STACK_GLOBAL MEMOIZE"
             " BINGET 0 SHORT_BINUNICODE 'B' MEMOIZE STACK_GLOBAL MEMOIZE"
             " BINGET 2 BINGET 3 TUPLE MEMOIZE STOP"));
}

TEST(Writer, WritesATupleThatHoldsItselfTwice) {
  Builder builder;
  const Value list = builder.list();
  const Value tuple = builder.tuple({list});
  builder.append(list, tuple);
  EXPECT_EQ(written(tuple),
            pickle("PROTO 2 EMPTY_LIST BINPUT 0 BINGET 0 TUPLE1 BINPUT 1"
                   " APPEND POP BINGET 1 STOP"));
  const Value four = builder.tuple({list, list, list, list});
  list.growing_items()->size = 0;
  builder.append(list, four);
  EXPECT_EQ(written(four),
            pickle("PROTO 2 MARK EMPTY_LIST BINPUT 0"
                   " MARK BINGET 0 BINGET 0 BINGET 0 BINGET 0 TUPLE BINPUT 1"
                   " APPEND BINGET 0 BINGET 0 BINGET 0 POP_MARK BINGET 1 "
                   "STOP"));
}

TEST(Writer, WritesAnIdAtEachUse) {
  Builder builder;
  const Value id = builder.persistent(builder.tuple({builder.string("0")}));
  EXPECT_EQ(written(builder.list({id, id})),
            pickle("PROTO 2 EMPTY_LIST BINPUT 0 MARK BINUNICODE '0' BINPUT 1"
                   " TUPLE1 BINPUT 2 BINPERSID BINGET 2 BINPERSID APPENDS "
                   "STOP"));
}

TEST(Writer, WritesACallWhereProtocol2HasNoOpcode) {
  Builder builder;
  EXPECT_EQ(
      written(builder.tuple({builder.bytes("\x80z"), builder.bytes("")})),
      pickle("PROTO 2 GLOBAL '_codecs' 'encode' BINPUT 0"
             " BINUNICODE '\\xc2\\x80z' BINPUT 1 BINUNICODE 'latin1' BINPUT 2"
             " TUPLE2 BINPUT 3 REDUCE BINPUT 4"
             " GLOBAL '__builtin__' 'bytes' BINPUT 5 EMPTY_TUPLE REDUCE"
             " BINPUT 6 TUPLE2 BINPUT 7 STOP"));
  const Value set = builder.set({Value::small(1)});
  EXPECT_EQ(written(builder.tuple({set, set})),
            pickle("PROTO 2 GLOBAL '__builtin__' 'set' BINPUT 0 EMPTY_LIST"
                   " BINPUT 1 BININT1 1 APPEND TUPLE1 BINPUT 2 REDUCE BINPUT 3"
                   " BINGET 3 TUPLE2 BINPUT 4 STOP"));
  EXPECT_EQ(written(builder.byte_array("ab"), {.protocol = 4}),
            pickle("PROTO 4 FRAME 35 SHORT_BINUNICODE 'builtins' MEMOIZE"
                   " SHORT_BINUNICODE 'bytearray' MEMOIZE STACK_GLOBAL MEMOIZE"
                   " SHORT_BINBYTES 'ab' MEMOIZE TUPLE1 MEMOIZE REDUCE MEMOIZE"
                   " STOP"));
}

TEST(Writer, WritesPython2StringsAsSuch) {
  Builder builder;
  EXPECT_EQ(written(builder.legacy_string("\xff")),
            pickle("PROTO 2 SHORT_BINSTRING '\\xff' BINPUT 0 STOP"));
  const std::string bytes =
      written(builder.legacy_string(std::string(256, 'x')));
  EXPECT_EQ(bytes.substr(2, 5), std::string("T\0\x01\0\0", 5));
}

TEST(Writer, KeepsLargeTextsOutOfFrames) {
  Builder builder;
  const std::string large(65536, 'x');
  const std::string bytes = written(
      builder.tuple({Value::none(), builder.bytes(large)}), {.protocol = 4});
  // Nothing is worth a frame: one byte before the text and four after it.
  EXPECT_EQ(bytes, pickle("PROTO 4 NONE") + std::string("B\0\0\x01\0", 5) +
                       large + pickle("FRAME 4 MEMOIZE TUPLE2 MEMOIZE STOP"));
}

TEST(Writer, WritesInstancesOfPython2) {
  const std::string bytes =
      pickle("MARK INT '1' INST 'm' 'T' BININT1 2 BUILD BININT1 3 APPEND STOP");
  Machine machine;
  const Result<Pickle> read = machine.load(as_bytes(bytes));
  ASSERT_TRUE(read.has_value());
  const std::string again = written(read->root);
  EXPECT_EQ(again, pickle("PROTO 2 MARK GLOBAL 'm' 'T' BINPUT 0 BININT1 1 OBJ"
                          " BINPUT 1 BININT1 3 APPEND BININT1 2 BUILD STOP"));
  Machine second;
  const Result<Pickle> back = second.load(as_bytes(again));
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(same_graph(read->root, back->root));
}

TEST(Writer, WritesTheArgumentsOfACallWhole) {
  // x = set([node]), node.state = x. Called while its list is still empty, set
  // would make an empty one: the list is written again where it is needed.
  Builder builder;
  const Value node = builder.new_object(Value::none(), Value::none());
  const Value call =
      builder.reduce(Value::none(), builder.tuple({builder.list({node})}));
  builder.add_state(node, call);
  EXPECT_EQ(written(call),
            pickle("PROTO 2 NONE EMPTY_LIST BINPUT 0 NONE NONE NEWOBJ BINPUT 1"
                   " NONE EMPTY_LIST BINPUT 2 BINGET 1 APPEND TUPLE1 BINPUT 3"
                   " REDUCE BINPUT 4 BUILD APPEND POP BINGET 3 REDUCE POP"
                   " BINGET 4 STOP"));
  // Here the list contains the call itself, so no order of writing works.
  const Value list = builder.list();
  const Value knot = builder.reduce(Value::none(), builder.tuple({list}));
  builder.append(list, knot);
  EXPECT_EQ(written(knot),
            pickle("PROTO 2 NONE EMPTY_LIST BINPUT 0 NONE BINGET 0 TUPLE1"
                   " BINPUT 1 REDUCE BINPUT 2 APPEND POP BINGET 1 REDUCE POP"
                   " BINGET 2 STOP"));
}

TEST(Writer, EndsOnValuesThatOnlyAHostilePickleMakes) {
  // A set that holds itself in a tuple.
  Builder builder;
  const Value set = builder.set();
  builder.append(set, builder.tuple({set}));
  EXPECT_LT(written(set).size(), 100u);
  // Calls that take each other's lists.
  const Value one = builder.list();
  const Value two = builder.list();
  const Value first = builder.reduce(Value::none(), builder.tuple({one}));
  const Value second = builder.reduce(Value::none(), builder.tuple({two}));
  builder.append(one, second);
  builder.append(two, first);
  EXPECT_LT(written(first).size(), 100u);
}

TEST(Writer, RefusesWhatNoPicklerWrites) {
  const std::string bytes = pickle("NONE NONE BUILD STOP");
  Machine machine;
  const Result<Pickle> read = machine.load(as_bytes(bytes));
  ASSERT_TRUE(read.has_value());
  expect_error(read->root, {}, ErrorKind::kUnsupported,
               "state or items were added to a value that is not an object; no "
               "pickle can express that");
}

TEST(Writer, RefusesPicklesThatGrowTooLong) {
  Builder builder;
  const Value number = builder.big_integer(std::string(1000, '\x11'));
  const std::vector<Value> numbers(1000, number);
  expect_error(
      builder.list(numbers), {.max_bytes = 100'000}, ErrorKind::kRefused,
      "the pickle would be longer than 100000 bytes; raise the limit if "
      "that is intended");
  EXPECT_EQ(written(number, {.max_bytes = 1006}).size(), 1008u)
      << "the limit is on what comes before the last opcodes";
}

TEST(Writer, RefusesOtherProtocols) {
  for (const int protocol : {-1, 0, 1, 3, 5})
    expect_error(Value::none(), {.protocol = protocol}, ErrorKind::kUsage,
                 "cannot write pickle protocol " + std::to_string(protocol) +
                     "; use 2 or 4");
}

TEST(Writer, RefusesNamesThatProtocol2CannotHave) {
  Builder builder;
  const Value global = builder.global("m", "a\nb");
  expect_error(global, {}, ErrorKind::kUsage,
               "the global 'a\nb' of module 'm' has a line break in its name; "
               "use pickle protocol 4");
  EXPECT_EQ(written(global, {.protocol = 4}),
            pickle("PROTO 4 FRAME 13 SHORT_BINUNICODE 'm' MEMOIZE"
                   " SHORT_BINUNICODE 'a\\nb' MEMOIZE STACK_GLOBAL MEMOIZE"
                   " STOP"));
}

TEST(Writer, RefusesBuffers) {
  expect_error(Value::numbered(Kind::kBuffer, 3), {.protocol = 4},
               ErrorKind::kUsage,
               "out-of-band buffer 3 can be written in pickle protocol 5 only; "
               "put its bytes into the value");
}

TEST(Writer, RefusesTextsTooLongForTheirOpcodes) {
  // Only the count is read before the text is refused.
  std::uint64_t counted[2] = {1ULL << 32, 0};
  const auto text = [&counted](Kind kind) {
    return Value::text(kind, Value::Prefix::kEight, counted + 1);
  };
  expect_error(text(Kind::kString), {}, ErrorKind::kUsage,
               "a string of 4294967296 bytes is too long for pickle protocol "
               "2; use protocol 4");
  expect_error(text(Kind::kLegacyString), {.protocol = 4}, ErrorKind::kUsage,
               "a Python 2 string of 4294967296 bytes is too long for a "
               "pickle");
  expect_error(text(Kind::kBigInteger), {.protocol = 4}, ErrorKind::kUsage,
               "an integer of 4294967296 bytes is too long for a pickle");
}

}  // namespace
}  // namespace postflight
