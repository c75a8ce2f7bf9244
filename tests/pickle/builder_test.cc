#include "pickle/builder.h"
#include "pickle/same_graph.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace postflight {
namespace {

std::vector<std::int64_t> integers_of(const Value& container) {
  std::vector<std::int64_t> numbers;
  for (const Value& item : container.items())
    numbers.push_back(item.integer());
  return numbers;
}

TEST(Builder, KeepsEveryIntegerOf64Bits) {
  Builder builder;
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 54,
        std::int64_t{1} << 55, -(std::int64_t{1} << 55) - 1,
        std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    const Value value = builder.integer(number);
    ASSERT_EQ(value.kind(), Kind::kInteger);
    EXPECT_EQ(value.integer(), number);
  }
}

TEST(Builder, BringsBigIntegersToTheirShortestForm) {
  Builder builder;
  using namespace std::string_literals;
  const Value fits = builder.big_integer("\x05\0\0\0\0\0\0\0\0\0"s);
  ASSERT_EQ(fits.kind(), Kind::kInteger);
  EXPECT_EQ(fits.integer(), 5);
  const Value big = builder.big_integer("\0\0\0\0\0\0\0\0\x01\0\0"s);
  ASSERT_EQ(big.kind(), Kind::kBigInteger);
  EXPECT_EQ(big.text(), "\0\0\0\0\0\0\0\0\x01"s);
}

TEST(Builder, KeepsFloats) {
  Builder builder;
  EXPECT_EQ(builder.floating(0.1).floating(), 0.1);
  EXPECT_TRUE(std::signbit(builder.floating(-0.0).floating()));
  EXPECT_TRUE(std::isnan(builder.floating(std::nan("")).floating()));
}

TEST(Builder, CopiesTexts) {
  Builder builder;
  std::string text = "text";
  const Value values[] = {builder.string(text), builder.interned(text),
                          builder.bytes(text), builder.byte_array(text),
                          builder.legacy_string(text)};
  text = "gone";
  for (const Value& value : values)
    EXPECT_EQ(value.text(), "text");
  EXPECT_EQ(values[0].kind(), Kind::kString);
  EXPECT_EQ(values[1].kind(), Kind::kString);
  EXPECT_EQ(values[2].kind(), Kind::kBytes);
  EXPECT_EQ(values[3].kind(), Kind::kByteArray);
  EXPECT_EQ(values[4].kind(), Kind::kLegacyString);
}

TEST(Builder, SharesInternedStringsOnly) {
  Builder builder;
  EXPECT_EQ(builder.interned("a").identity(), builder.interned("a").identity());
  EXPECT_NE(builder.interned("a").identity(), builder.interned("b").identity());
  EXPECT_NE(builder.string("a").identity(), builder.string("a").identity());
  EXPECT_NE(builder.string("a").identity(), builder.interned("a").identity());
}

TEST(Builder, MakesOneGlobalOfAName) {
  Builder builder;
  const Value global = builder.global("torch", "float32");
  EXPECT_EQ(global.global().module, "torch");
  EXPECT_EQ(global.global().name, "float32");
  EXPECT_EQ(builder.global("torch", "float32").identity(), global.identity());
  EXPECT_NE(builder.global("torch", "float64").identity(), global.identity());
  EXPECT_NE(builder.global("tor", "chfloat32").identity(), global.identity());
  EXPECT_EQ(global.global().module.data(), builder.interned("torch").identity())
      << "protocol 4 shares names with strings";
}

TEST(Builder, MakesContainersFromSpansAndLists) {
  Builder builder;
  const std::vector<Value> items{Value::small(1), Value::small(2)};
  const std::vector<std::int64_t> numbers{1, 2};
  const std::pair<Value, Kind> made[] = {
      {builder.tuple(items), Kind::kTuple},
      {builder.frozen_set(items), Kind::kFrozenSet},
      {builder.list(items), Kind::kList},
      {builder.set(items), Kind::kSet},
      {builder.tuple({items[0], items[1]}), Kind::kTuple},
      {builder.frozen_set({items[0], items[1]}), Kind::kFrozenSet},
      {builder.list({items[0], items[1]}), Kind::kList},
      {builder.set({items[0], items[1]}), Kind::kSet}};
  for (const auto& [value, kind] : made) {
    EXPECT_EQ(value.kind(), kind);
    EXPECT_EQ(integers_of(value), numbers);
  }
  EXPECT_TRUE(builder.tuple({}).items().empty());
  EXPECT_TRUE(builder.list().items().empty());

  const std::vector<Pair> pairs{{items[0], items[1]}};
  for (const Value& dict :
       {builder.dict(pairs), builder.dict({{items[0], items[1]}})}) {
    ASSERT_EQ(dict.pairs().size(), 1u);
    EXPECT_EQ(dict.pairs()[0].key.integer(), 1);
    EXPECT_EQ(dict.pairs()[0].value.integer(), 2);
  }
}

TEST(Builder, GrowsWhatItMade) {
  Builder builder;
  const Value list = builder.list({Builder::boolean(true)});
  const Value dict = builder.dict();
  for (int i = 0; i < 1000; ++i) {
    builder.append(list, Value::small(i));
    builder.set_item(dict, Value::small(i), list);
  }
  builder.set_item(dict, "name", list);
  ASSERT_EQ(list.items().size(), 1001u);
  EXPECT_EQ(list.items()[1000].integer(), 999);
  ASSERT_EQ(dict.pairs().size(), 1001u);
  EXPECT_EQ(dict.pairs()[999].key.integer(), 999);
  EXPECT_EQ(dict.find("name")->identity(), list.identity());
}

TEST(Builder, MakesObjects) {
  Builder builder;
  const Value type = builder.global("m", "T");
  const Value arguments = builder.tuple({Value::small(1)});
  const Value reduced = builder.reduce(type, arguments);
  builder.append(reduced, Value::small(2));
  builder.set_item(reduced, "k", Value::small(3));
  builder.add_state(reduced, Value::small(4));
  const Object& object = reduced.object();
  EXPECT_EQ(object.making, Making::kReduce);
  EXPECT_EQ(object.callable.identity(), type.identity());
  EXPECT_EQ(object.arguments.identity(), arguments.identity());
  ASSERT_EQ(object.items().size(), 1u);
  ASSERT_EQ(object.pairs().size(), 1u);
  ASSERT_EQ(object.states().size(), 1u);
  EXPECT_EQ(object.states()[0].integer(), 4);

  EXPECT_EQ(builder.new_object(type, arguments).object().making, Making::kNew);
  const Value keywords = builder.dict();
  const Value made = builder.new_object(type, arguments, keywords);
  EXPECT_EQ(made.object().making, Making::kNewEx);
  EXPECT_EQ(made.object().keywords().identity(), keywords.identity());
  EXPECT_EQ(builder.persistent(arguments).persistent_id().identity(),
            arguments.identity());
  EXPECT_EQ(Builder::extension(300).integer(), 300);
}

TEST(Builder, OutlivesAMove) {
  Builder first;
  const Value before = first.interned("kept");
  Builder second = std::move(first);
  EXPECT_EQ(before.text(), "kept");
  EXPECT_EQ(second.interned("kept").identity(), before.identity());
}

TEST(SameGraph, TellsSharingFromEquality) {
  Builder builder;
  const Value item = builder.list();
  const Value shared = builder.list({item, item});
  const Value apart = builder.list({builder.list(), builder.list()});
  EXPECT_TRUE(same_graph(shared, shared));
  EXPECT_TRUE(same_graph(apart, builder.list({builder.list(), item})));
  EXPECT_FALSE(same_graph(shared, apart));
  EXPECT_FALSE(same_graph(apart, shared));
}

TEST(SameGraph, FollowsCycles) {
  Builder builder;
  const Value one = builder.list();
  builder.append(one, one);
  const Value two = builder.list();
  builder.append(two, builder.list({two}));
  EXPECT_TRUE(same_graph(one, one));
  EXPECT_FALSE(same_graph(one, two)) << "equal for ever, but two lists";
}

}  // namespace
}  // namespace postflight
