#include "pickle/sharing.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pickle/assembler.h"
#include "pickle/builder.h"
#include "pickle/machine.h"
#include "pickle/shown.h"

namespace postflight {
namespace {

std::string reread(std::string_view text) {
  const std::string bytes = pickle(text);
  Machine machine;
  const Result<Pickle> read = machine.load(as_bytes(bytes));
  return read ? shown(read->root) : std::string(read.error().message());
}

TEST(Sharing, NumbersWhatIsSharedInTheOrderItIsMet) {
  Builder make;
  const Value inner = make.list();
  const Value outer = make.tuple({inner});
  const Value root = make.list({make.list(), outer, inner, outer});
  const Sharing sharing(root);
  EXPECT_EQ(sharing.anchor(outer), 1u);
  EXPECT_EQ(sharing.anchor(inner), 2u);
  EXPECT_EQ(sharing.anchor(root), 0u);
  EXPECT_EQ(sharing.anchor(root.items()[0]), 0u);
}

TEST(Sharing, FindsEveryKindOfContainer) {
  Builder make;
  const Value call = make.reduce(make.global("m", "f"), make.tuple({}));
  for (const Value& value :
       {make.list(), make.set(), make.dict(), make.tuple({make.list()}),
        make.frozen_set({make.list()}), make.byte_array(""),
        make.byte_array("x"), call, make.persistent(make.integer(1))})
    EXPECT_EQ(Sharing(make.list({value, value})).anchor(value), 1u)
        << shown(value);
}

TEST(Sharing, LeavesOutWhatMakesNoDifference) {
  Builder make;
  for (const Value& value :
       {Builder::none(), make.integer(1), make.floating(0.5), make.tuple({}),
        make.string("text"), make.bytes(std::string(256, 'x')),
        make.global("m", "f"), make.big_integer("123456789")})
    EXPECT_EQ(Sharing(make.list({value, value})).anchor(value), 0u)
        << shown(value);
}

TEST(Sharing, CountsLongText) {
  Builder make;
  const std::string text(257, 'x');
  for (const Value& value :
       {make.string(text), make.bytes(text), make.legacy_string(text),
        make.big_integer(text)}) {
    EXPECT_EQ(Sharing(make.list({value, value})).anchor(value), 1u);
    EXPECT_EQ(Sharing(make.list({value})).anchor(value), 0u);
  }
}

TEST(Sharing, CountsShorterTextThatAddsUp) {
  Builder make;
  const Value text = make.string(std::string(128, 'x'));
  const std::vector<Value> some(512, text);
  const std::vector<Value> many(513, text);
  EXPECT_EQ(Sharing(make.list(some)).anchor(text), 0u);
  EXPECT_EQ(Sharing(make.list(many)).anchor(text), 1u);
  const Value word = make.string(std::string(64, 'x'));
  const std::vector<Value> words(100'000, word);
  EXPECT_EQ(Sharing(make.list(words)).anchor(word), 0u);
}

TEST(Sharing, CountsLongNamesOfGlobals) {
  Builder make;
  const std::string module(300, 'm');
  const Value global = make.global(module, "f");
  const Sharing sharing(make.list({global, global}));
  EXPECT_EQ(sharing.anchor(global), 0u);
  EXPECT_EQ(sharing.anchor(global.global().module), 1u);
  EXPECT_EQ(sharing.anchor(global.global().name), 0u);
}

TEST(Sharing, TellsAnEmptyTextFromTheListMadeAfterIt) {
  EXPECT_EQ(reread("MARK UNICODE '' EMPTY_LIST BINPUT 0 BINGET 0 LIST STOP"),
            "['', &1 [], *1]");
  EXPECT_EQ(
      reread("MARK STRING '\\'\\'' EMPTY_DICT BINPUT 0 BINGET 0 LIST STOP"),
      "[legacy b'', &1 {}, *1]");
}

TEST(Sharing, WalksAMillionLevels) {
  Builder make;
  Value value = make.list();
  const Value innermost = value;
  for (int i = 0; i < 1'000'000; ++i)
    value = make.list({value});
  make.append(innermost, value);
  const Sharing sharing(value);
  EXPECT_EQ(sharing.anchor(value), 1u);
  EXPECT_EQ(sharing.anchor(innermost), 0u);
}

}  // namespace
}  // namespace postflight
