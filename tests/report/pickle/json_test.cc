#include "report/pickle/json.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pickle/builder.h"

namespace postflight {
namespace {

std::string json(const Value& value) {
  return json_text(
      [&value](JsonWriter& writer) { write_pickle_json(value, writer); });
}

TEST(PickleJson, KeepsWhatJsonHas) {
  Builder make;
  EXPECT_EQ(json(make.list({Builder::none(), Builder::boolean(false),
                            make.integer(-7), make.floating(1),
                            make.string("\"é\n")})),
            "[null,false,-7,1.0,\"\\\"é\\n\"]");
  EXPECT_EQ(json(make.dict({{make.string("k"), make.list()},
                            {make.string("k"), make.dict()}})),
            "{\"k\":[],\"k\":{}}");
}

TEST(PickleJson, NamesWhatJsonHasNot) {
  Builder make;
  EXPECT_EQ(json(make.integer(std::int64_t{1} << 53)), "9007199254740992");
  EXPECT_EQ(json(make.integer((std::int64_t{1} << 53) + 1)),
            "{\"$int\":\"9007199254740993\"}");
  EXPECT_EQ(json(make.big_integer(std::string(8, '\0') + '\1')),
            "{\"$int\":\"18446744073709551616\"}");
  EXPECT_EQ(json(make.floating(-INFINITY)), "{\"$float\":\"-Infinity\"}");
  EXPECT_EQ(json(make.floating(NAN)), "{\"$float\":\"NaN\"}");
  EXPECT_EQ(json(make.string("\xff\\")),
            "{\"$str\":\"\\\\xff\\\\\\\\\",\"escaped\":true}");
  EXPECT_EQ(json(make.bytes("b")), "{\"$bytes\":\"b\"}");
  EXPECT_EQ(json(make.bytes("\xff")),
            "{\"$bytes\":\"\\\\xff\",\"escaped\":true}");
  EXPECT_EQ(json(make.byte_array("b")), "{\"$bytearray\":\"b\"}");
  EXPECT_EQ(json(make.legacy_string("b")), "{\"$legacy\":\"b\"}");
  EXPECT_EQ(json(make.tuple({make.integer(1)})), "{\"$tuple\":[1]}");
  EXPECT_EQ(json(make.set({make.integer(1)})), "{\"$set\":[1]}");
  EXPECT_EQ(json(make.frozen_set({make.integer(1)})), "{\"$frozenset\":[1]}");
  EXPECT_EQ(json(make.global("m", "f")), "{\"$global\":[\"m\",\"f\"]}");
  EXPECT_EQ(json(make.persistent(make.integer(1))), "{\"$persistent\":1}");
  EXPECT_EQ(json(Builder::extension(5)), "{\"$extension\":5}");
  EXPECT_EQ(json(Value::numbered(Kind::kReadOnlyBuffer, 2)),
            "{\"$buffer\":2,\"readonly\":true}");
}

TEST(PickleJson, ListsPairsWhereAKeyIsNoPlainText) {
  Builder make;
  EXPECT_EQ(json(make.dict({{make.integer(1), Builder::none()}})),
            "{\"$dict\":[1,null]}");
  EXPECT_EQ(json(make.dict({{make.string("$ref"), make.integer(1)}})),
            "{\"$dict\":[\"$ref\",1]}");
  EXPECT_EQ(json(make.dict({{make.string("\xff"), make.integer(1)}})),
            "{\"$dict\":[{\"$str\":\"\\\\xff\",\"escaped\":true},1]}");
}

TEST(PickleJson, ListsAllThatWasGivenToAnObject) {
  Builder make;
  const Value call =
      make.new_object(make.global("m", "C"), make.tuple({}), make.dict());
  make.append(call, make.integer(1));
  make.set_item(call, make.integer(2), make.integer(3));
  make.add_state(call, make.integer(4));
  make.add_state(call, make.integer(5));
  EXPECT_EQ(json(call),
            "{\"$making\":\"new_ex\",\"callable\":{\"$global\":[\"m\",\"C\"]},"
            "\"arguments\":{\"$tuple\":[]},\"keywords\":{},\"items\":[1],"
            "\"pairs\":[2,3],\"states\":[4,5]}");
}

TEST(PickleJson, RefersToSharedValues) {
  Builder make;
  const Value list = make.list();
  make.append(list, list);
  EXPECT_EQ(json(list), "{\"$anchor\":1,\"value\":[{\"$ref\":1}]}");
  const Value array = make.byte_array("b");
  EXPECT_EQ(json(make.tuple({array, array})),
            "{\"$tuple\":[{\"$anchor\":1,\"value\":{\"$bytearray\":\"b\"}},"
            "{\"$ref\":1}]}");
}

TEST(PickleJson, RefersToLongTextAlsoInKeysAndNames) {
  Builder make;
  const std::string text(300, 'x');
  const Value shared = make.string(text);
  const Value one = make.dict({{shared, make.integer(1)}});
  const Value two = make.dict({{shared, make.integer(2)}});
  EXPECT_EQ(json(make.list({one, two})),
            "[{\"$dict\":[{\"$anchor\":1,\"value\":\"" + text +
                "\"},1]},{\"$dict\":[{\"$ref\":1},2]}]");
  const Value global = make.global(text, "f");
  EXPECT_EQ(json(make.list({global, global})),
            "[{\"$global\":[{\"$anchor\":1,\"value\":\"" + text +
                "\"},\"f\"]},{\"$global\":[{\"$ref\":1},\"f\"]}]");
}

}  // namespace
}  // namespace postflight
