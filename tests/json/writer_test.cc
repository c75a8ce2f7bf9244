#include "json/writer.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "base/arbitrary_text.h"
#include "base/escape.h"
#include "base/utf8.h"

namespace postflight {
namespace {

template <class T>
std::string written(const T& item) {
  return json_text([&item](JsonWriter& json) { json.value(item); });
}

// As the only field of an object, where the mark has its place.
std::string as_field(std::string_view text) {
  return json_text([text](JsonWriter& json) {
    json.object();
    json.field("a", text);
    json.end();
  });
}

TEST(JsonWriter, SeparatesWhatItNests) {
  EXPECT_EQ(json_text([](JsonWriter& json) {
              json.begin("postflight.test/1");
              json.field("rank", 3);
              json.array("none");
              json.end();
              json.array("rows");
              json.object();
              json.end();
              json.object();
              json.field("a", true);
              json.field("b", nullptr);
              json.end();
              json.array();
              json.value(1);
              json.value("two");
              json.end();
              json.end();
              json.object("place");
              json.field("line", std::optional<int>());
              json.field("file", std::optional<std::string>("f.py"));
              json.end();
              json.finish();
            }),
            "{\"schema\":\"postflight.test/1\",\"rank\":3,\"none\":[],"
            "\"rows\":[{},{\"a\":true,\"b\":null},[1,\"two\"]],"
            "\"place\":{\"line\":null,\"file\":\"f.py\"}}\n");
}

TEST(JsonWriter, WritesAnAnswerPerLine) {
  EXPECT_EQ(json_text([](JsonWriter& json) {
              for (int i = 0; i < 2; ++i) {
                json.begin("s");
                json.field("i", i);
                json.finish();
              }
            }),
            "{\"schema\":\"s\",\"i\":0}\n{\"schema\":\"s\",\"i\":1}\n");
}

TEST(JsonWriter, WritesIntegersThatReadersWouldRoundAsText) {
  EXPECT_EQ(written(std::int64_t{9007199254740992}), "9007199254740992");
  EXPECT_EQ(written(std::int64_t{9007199254740993}), "\"9007199254740993\"");
  EXPECT_EQ(written(std::int64_t{-9007199254740992}), "-9007199254740992");
  EXPECT_EQ(written(std::int64_t{-9007199254740993}), "\"-9007199254740993\"");
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()),
            "\"-9223372036854775808\"");
  EXPECT_EQ(written(std::uint64_t{9007199254740992}), "9007199254740992");
  EXPECT_EQ(written(std::numeric_limits<std::uint64_t>::max()),
            "\"18446744073709551615\"");
  EXPECT_EQ(written(std::uint8_t{7}), "7");
}

TEST(JsonWriter, WritesNumbersOfAnySizeForOtherFormats) {
  EXPECT_EQ(json_text([](JsonWriter& json) {
              json.array();
              json.number(std::numeric_limits<std::uint64_t>::max());
              json.number(std::numeric_limits<std::int64_t>::min());
              json.end();
            }),
            "[18446744073709551615,-9223372036854775808]");
}

TEST(JsonWriter, WritesTimesAndIdsAsText) {
  EXPECT_EQ(json_text([](JsonWriter& json) {
              json.object();
              json.time("t", 0);
              json.time("u", std::uint64_t{1} << 63);
              json.id("a", -1);
              json.id("b", std::optional<std::int64_t>());
              json.id("c", std::optional<std::int64_t>(2));
              json.end();
            }),
            "{\"t\":\"0\",\"u\":\"9223372036854775808\",\"a\":\"-1\","
            "\"b\":null,\"c\":\"2\"}");
}

TEST(JsonWriter, WritesDoublesAsPythonDoes) {
  EXPECT_EQ(written(0.5), "0.5");
  EXPECT_EQ(written(1.0), "1.0");
  EXPECT_EQ(written(-0.0), "-0.0");
  EXPECT_EQ(written(1e16), "1e+16");
  EXPECT_EQ(written(0.1F), "0.10000000149011612");
  EXPECT_EQ(written(1.0 / 0.0), "\"Infinity\"");
  EXPECT_EQ(written(-1.0 / 0.0), "\"-Infinity\"");
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "\"NaN\"");
}

TEST(JsonWriter, QuotesPlainText) {
  EXPECT_EQ(written(""), "\"\"");
  EXPECT_EQ(written("größe 漢 😀"), "\"größe 漢 😀\"");
  EXPECT_EQ(written("a \"b\" \\c"), R"("a \"b\" \\c")");
}

TEST(JsonWriter, EscapesControlCharacters) {
  EXPECT_EQ(written("a\n\t\r\x1b\x7f"), R"("a\n\t\r\u001b\u007f")");
  EXPECT_EQ(written("\xc2\x9b\xe2\x80\xae"), R"("\u009b\u202e")");
  EXPECT_EQ(written("\xf3\xa0\x81\x81"), R"("\udb40\udc41")");
}

TEST(JsonWriter, WritesLoneSurrogatesAsPythonDoes) {
  EXPECT_EQ(as_field("a\xed\xa0\x80\\"), R"({"a":"a\ud800\\"})");
  EXPECT_EQ(as_field("\xed\xbf\xbf"), R"({"a":"\udfff"})");
}

TEST(JsonWriter, MarksTextThatIsNotUtf8) {
  EXPECT_EQ(as_field("a\xff\\\n\"\xc3\xa9"),
            R"({"a":"a\\xff\\\\\n\"é","a_escaped":true})");
  EXPECT_EQ(json_text([](JsonWriter& json) {
              json.object();
              json.array("a", std::vector<std::string>{"\xff", "b"});
              json.field("c", std::optional<std::string>("\xfe"));
              json.end();
            }),
            R"({"a":["\\xff","b"],"a_escaped":true,)"
            R"("c":"\\xfe","c_escaped":true})");
}

TEST(JsonWriter, EscapesKeys) {
  EXPECT_EQ(json_text([](JsonWriter& json) {
              json.object();
              json.field("a\"\n", 1);
              json.end();
            }),
            R"({"a\"\n":1})");
}

TEST(JsonWriter, ProjectsItems) {
  struct Item {
    std::int64_t value;
  };
  EXPECT_EQ(json_text([](JsonWriter& json) {
              json.object();
              json.array("a", std::vector<Item>{{1}, {std::int64_t{1} << 60}},
                         &Item::value);
              json.end();
            }),
            R"({"a":[1,"1152921504606846976"]})");
}

TEST(JsonWriter, TakesMembersThatWereWrittenBefore) {
  EXPECT_EQ(json_text([](JsonWriter& json) {
              json.object();
              json.members("{}");
              json.members(R"({"a":1,"b":2})");
              json.members(R"({"c":3})");
              json.field("d", 4);
              json.end();
            }),
            R"({"a":1,"b":2,"c":3,"d":4})");
}

TEST(JsonWriter, HandsTextOnInPieces) {
  std::size_t pieces = 0;
  std::size_t largest = 0;
  {
    Output out([&](std::string_view piece) {
      ++pieces;
      largest = std::max(largest, piece.size());
    });
    JsonWriter json(out);
    json.array();
    for (int i = 0; i < 1'000'000; ++i)
      json.value(i);
    json.end();
  }
  EXPECT_GT(pieces, 50U);
  EXPECT_LT(largest, 100'000U);
}

bool has_surrogate(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (character.kind == Utf8Kind::kSurrogate)
      return true;
    text.remove_prefix(character.size);
  }
  return false;
}

// What a reader makes of text that may hold bytes that are not UTF-8.
void check_text(const std::string& text, const nlohmann::json& read) {
  const auto value = read.get<std::string>();
  if (is_utf8(text))
    RC_ASSERT(value == text);
  else
    RC_ASSERT(escape_for_terminal(value) ==
              escape_for_terminal(text, EscapeMode::kUnambiguous));
}

RC_GTEST_PROP(JsonWriter, TextIsReadBackByAParser, ()) {
  const std::string text = *arbitrary_text();
  RC_PRE(!has_surrogate(text));  // which the parser refuses

  const auto read = nlohmann::json::parse(as_field(text));

  check_text(text, read["a"]);
  RC_ASSERT(read.contains("a_escaped") == !is_utf8(text));
  RC_ASSERT(JsonWriter::keeps(text) == is_utf8(text));
}

RC_GTEST_PROP(JsonWriter, IsFitForATerminal, ()) {
  const std::string json = as_field(*arbitrary_text());
  RC_ASSERT(escape_for_terminal(json) == json);
}

nlohmann::json read_integer(const nlohmann::json& read, bool is_unsigned) {
  if (!read.is_string())
    return read;
  const auto text = read.get<std::string>();
  if (is_unsigned)
    return std::stoull(text);
  return std::stoll(text);
}

RC_GTEST_PROP(JsonWriter, NumbersAreReadBackByAParser, ()) {
  const auto number = *rc::gen::arbitrary<std::int64_t>()
                      << *rc::gen::inRange(0, 40);
  const auto natural = *rc::gen::arbitrary<std::uint64_t>()
                       << *rc::gen::inRange(0, 40);
  const auto real = *rc::gen::arbitrary<double>();

  RC_ASSERT(read_integer(nlohmann::json::parse(written(number)), false) ==
            number);
  RC_ASSERT(read_integer(nlohmann::json::parse(written(natural)), true) ==
            natural);
  RC_ASSERT(nlohmann::json::parse(written(real)).get<double>() == real);
}

// A tree that is made of arbitrary steps, written and kept at the same time.
class Growing {
 public:
  explicit Growing(JsonWriter& json) : json_(json) {
    json_.object();
    open_.push_back(&root_);
  }

  void step(int choice) {
    nlohmann::json& at = *open_.back();
    const std::string name = "k" + std::to_string(count_++);
    if (choice == 0 && open_.size() > 1) {
      json_.end();
      open_.pop_back();
      return;
    }
    if (at.is_object())
      json_.key(name);
    nlohmann::json made;
    if (choice == 1) {
      made = nlohmann::json::object();
      json_.object();
    } else if (choice == 2) {
      made = nlohmann::json::array();
      json_.array();
    } else if (choice == 3) {
      made = count_;
      json_.value(count_);
    } else if (choice == 4) {
      made = name;
      json_.value(name);
    } else {
      json_.value(nullptr);
    }
    const bool is_container = made.is_structured();
    nlohmann::json& kept = at.is_object()
                               ? at[name] = std::move(made)
                               : (at.push_back(std::move(made)), at.back());
    if (is_container)
      open_.push_back(&kept);
  }

  nlohmann::json finish() {
    for (std::size_t i = 0; i < open_.size(); ++i)
      json_.end();
    return root_;
  }

 private:
  JsonWriter& json_;
  nlohmann::json root_ = nlohmann::json::object();
  std::vector<nlohmann::json*> open_;
  int count_ = 0;
};

RC_GTEST_PROP(JsonWriter, TreesAreReadBackByAParser, ()) {
  const auto steps =
      *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6));
  nlohmann::json expected;
  const std::string text = json_text([&](JsonWriter& json) {
    Growing growing(json);
    for (const int choice : steps)
      growing.step(choice);
    expected = growing.finish();
  });
  RC_ASSERT(nlohmann::json::parse(text) == expected);
}

#ifndef NDEBUG
TEST(JsonWriterDeathTest, RefusesMisuse) {
  const auto misuse = [](auto write) { json_text(write); };
  EXPECT_DEATH(misuse([](JsonWriter& json) { json.end(); }), "open_");
  EXPECT_DEATH(misuse([](JsonWriter& json) { json.object(); }), "open_");
  EXPECT_DEATH(misuse([](JsonWriter& json) { json.key("a"); }), "open_");
  EXPECT_DEATH(misuse([](JsonWriter& json) {
                 json.object();
                 json.value(1);
               }),
               "after_key_");
  EXPECT_DEATH(misuse([](JsonWriter& json) {
                 json.value(1);
                 json.value(2);
               }),
               "second value");
}
#endif

}  // namespace
}  // namespace postflight
