#include "report/pickle/text.h"

#include <gtest/gtest.h>

#include "pickle/builder.h"

namespace postflight {
namespace {

std::string shown(const Value& value, const PickleTextOptions& options = {}) {
  std::string text;
  {
    Output out([&text](std::string_view piece) { text += piece; });
    write_pickle_text(value, options, out);
  }
  return text;
}

TEST(PickleText, ShowsPlainValuesAsPythonWritesThem) {
  Builder make;
  EXPECT_EQ(shown(make.list({Builder::none(), Builder::boolean(true),
                             make.integer(-7), make.floating(1.5),
                             make.string("it's"), make.bytes("\xff"),
                             make.tuple({make.integer(1)}), make.tuple({})})),
            "[None, True, -7, 1.5, \"it's\", b'\\xff', (1,), ()]\n");
}

TEST(PickleText, ShowsSharedContainersOnceAndRefersToThem) {
  Builder make;
  const Value shared = make.list({make.integer(1)});
  EXPECT_EQ(shown(make.list({shared, shared})), "[&1 [1], *1]\n");
}

TEST(PickleText, ShowsCycles) {
  Builder make;
  const Value list = make.list();
  make.append(list, list);
  EXPECT_EQ(shown(list), "&1 [*1]\n");
}

TEST(PickleText, LabelsTheFirstOccurrenceThatIsNotCutAway) {
  Builder make;
  const Value shared = make.list({make.integer(1)});
  const Value long_list = make.list();
  for (int i = 0; i < 50; ++i)
    make.append(long_list, i == 40 ? shared : make.integer(i));
  EXPECT_EQ(shown(make.list({long_list, shared}), {.width = 200, .items = 2}),
            "[[0, 1, … 48 more], &1 [1]]\n");
}

TEST(PickleText, ShowsCallsWithTheirArgumentsItemsAndState) {
  Builder make;
  const Value call = make.reduce(make.global("collections", "OrderedDict"),
                                 make.tuple({make.integer(3)}));
  make.set_item(call, "key", make.integer(1));
  make.add_state(call, make.dict());
  EXPECT_EQ(shown(call), "collections.OrderedDict(3, 'key': 1, state={})\n");
}

TEST(PickleText, CutsLongListsStringsAndDeepNestingUnlessAllIsWanted) {
  Builder make;
  const Value list = make.list();
  for (int i = 0; i < 9; ++i)
    make.append(list, make.integer(i));
  EXPECT_EQ(shown(list, {.items = 3}), "[0, 1, 2, … 6 more]\n");
  EXPECT_EQ(shown(list, {.items = 7}), "[0, 1, 2, 3, 4, 5, 6, 7, 8]\n");
  EXPECT_EQ(shown(list, {.all = true, .items = 3}),
            "[0, 1, 2, 3, 4, 5, 6, 7, 8]\n");
  EXPECT_EQ(shown(make.string("abcdef"), {.text = 3}), "'abc'… (6 bytes)\n");
  EXPECT_EQ(
      shown(make.list({make.list({make.list({make.none()})})}), {.depth = 2}),
      "[[[…]]]\n");
}

TEST(PickleText, EscapesNames) {
  Builder make;
  EXPECT_EQ(shown(make.global("a\x1b[31m", "b\n")), "<a\\u{1b}[31m.b\\n>\n");
}

TEST(PickleText, ShowsAMillionNestedListsInShort) {
  Builder make;
  Value value = make.list();
  for (int i = 0; i < 1'000'000; ++i)
    value = make.list({value});
  EXPECT_EQ(shown(value, {.depth = 3}), "[[[[…]]]]\n");
}

}  // namespace
}  // namespace postflight
