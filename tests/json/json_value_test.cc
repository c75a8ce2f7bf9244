#include "json/json_value.h"

#include <string>

#include <gtest/gtest.h>

#include "pickle/shown.h"

namespace postflight {
namespace {

std::string read(std::string_view text, const JsonOptions& options = {}) {
  Builder builder;
  const Result<Value> value = parse_json(as_bytes(text), builder, options);
  return value ? shown(*value) : std::string(value.error().message());
}

TEST(JsonValue, GivesTheValuesOfAPickle) {
  EXPECT_EQ(read(R"({"a": [1, -2, 1.5, true, null], "b": {"c": "d"}})"),
            "{'a': [1, -2, 1.5, True, None], 'b': {'c': 'd'}}");
  EXPECT_EQ(read("[]"), "[]");
  EXPECT_EQ(read("\"\\u00e4\""), "'ä'");
}

TEST(JsonValue, KeepsWholeWhatNoDoubleHolds) {
  EXPECT_EQ(read("[9223372036854775807, 9223372036854775808, "
                 "18446744073709551615]"),
            "[9223372036854775807, big 9223372036854775808, big "
            "18446744073709551615]");
}

TEST(JsonValue, KeepsPairsWithTheSameKey) {
  EXPECT_EQ(read(R"({"a": 1, "a": 2})"), "{'a': 1, 'a': 2}");
}

TEST(JsonValue, SharesTextsWhereAsked) {
  for (const bool shared : {false, true}) {
    Builder builder;
    const Value list = *parse_json(as_bytes(R"(["text", "text"])"), builder,
                                   {.share_texts = shared});
    EXPECT_EQ(list.items()[0].identity() == list.items()[1].identity(), shared);
  }
}

TEST(JsonValue, SaysWhereItBreaks) {
  EXPECT_EQ(read(R"({"a": ])"),
            "no JSON: byte 6: syntax error while parsing value - unexpected "
            "']'; expected '[', '{', or a literal");
  EXPECT_EQ(read(""),
            "no JSON: byte 0: syntax error while parsing value - unexpected "
            "end of input; expected '[', '{', or a literal");
}

TEST(JsonValue, RefusesWhatIsNestedTooDeep) {
  Limits limits;
  limits.max_json_depth = 3;
  EXPECT_EQ(read("[[[1]]]", {.limits = limits}), "[[[1]]]");
  EXPECT_EQ(read("[[[[1]]]]", {.limits = limits}),
            "no JSON: it is nested more than 3 deep (max_json_depth)");
  EXPECT_EQ(read(std::string(100'000, '[')),
            "no JSON: it is nested more than 512 deep (max_json_depth)");
}

TEST(JsonValue, KeepsWhatWasWholeBeforeTheEnd) {
  Builder builder;
  const JsonValue json = read_json_value(
      R"({"version": "2", "entries": [{"a": 1}, {"b": )", builder);
  ASSERT_TRUE(json.damage.has_value());
  ASSERT_TRUE(json.root.has_value());
  EXPECT_EQ(shown(*json.root), "{'version': '2', 'entries': [{'a': 1}]}");
}

constexpr std::string_view kSample =
    R"({"t": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, )"
    R"("__metadata__": {"format": "pt", "n": 18446744073709551615}})";

TEST(JsonValue, FailsCleanlyForEveryPrefix) {
  for (std::size_t size = 0; size < kSample.size(); ++size) {
    Builder builder;
    const JsonValue json = read_json_value(kSample.substr(0, size), builder);
    EXPECT_TRUE(json.damage.has_value()) << size;
  }
  EXPECT_EQ(read(kSample),
            "{'t': {'dtype': 'F32', 'shape': [2, 3], 'data_offsets': [0, 24]}, "
            "'__metadata__': {'format': 'pt', 'n': big "
            "18446744073709551615}}");
}

TEST(JsonValue, ReadsEveryFlippedByteOrFails) {
  for (std::size_t at = 0; at < kSample.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string text(kSample);
      text[at] = static_cast<char>(text[at] ^ 1 << bit);
      Builder builder;
      const JsonValue json = read_json_value(text, builder);
      EXPECT_TRUE(json.damage.has_value() || json.root.has_value());
    }
}

}  // namespace
}  // namespace postflight
