// Any graph survives a round trip.

#include "pickle/builder.h"
#include "pickle/machine.h"
#include "pickle/same_graph.h"
#include "pickle/writing/writer.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

bool survives(const Value& value, const WriteOptions& options) {
  const Result<std::string> bytes = write_pickle(value, options);
  if (!bytes) {
    ADD_FAILURE() << bytes.error().message();
    return false;
  }
  Machine machine;
  const Result<Pickle> back = machine.load(as_bytes(*bytes));
  if (!back) {
    ADD_FAILURE() << back.error().message();
    return false;
  }
  return back->size == bytes->size() && back->protocol == options.protocol &&
         same_graph(value, back->root);
}

enum class Vocabulary { kRecorder, kProtocol2, kProtocol4 };

// Makes a graph from arbitrary numbers: each makes a new value out of those
// made before, or changes one of them, which is where cycles come from.
class GraphMaker {
 public:
  explicit GraphMaker(Vocabulary vocabulary) : vocabulary_(vocabulary) {}

  Value make(const std::vector<std::uint32_t>& steps) {
    for (const std::uint32_t step : steps)
      take(step);
    const Value root = builder_.list(made_);
    if (vocabulary_ != Vocabulary::kRecorder)
      builder_.append(root, root);
    return root;
  }

 private:
  void take(std::uint32_t step) {
    const unsigned choice = step % 32;
    step /= 32;
    const Value a = pick(step);
    const Value b = pick(step / 7);
    const Value c = pick(step / 49);
    if (choice < 14)
      made_.push_back(simple(choice, step, a, b, c));
    else if (vocabulary_ != Vocabulary::kRecorder && choice < 27)
      made_.push_back(special(choice, step, a, b, c));
    else if (vocabulary_ != Vocabulary::kRecorder && !growing_.empty())
      grow(growing_[step % growing_.size()], b, c);
  }

  Value simple(unsigned choice, std::uint32_t step, Value a, Value b, Value c) {
    const std::string text(step % 5 == 0 ? step % 300 : step % 3, 'x');
    switch (choice) {
      case 0:
        return Value::none();
      case 1:
        return Value::boolean(step % 2 == 0);
      case 2:
        return builder_.integer(std::int64_t{step} - (1 << 25));
      case 3:
        return builder_.integer(std::numeric_limits<std::int64_t>::min() +
                                std::int64_t{step});
      case 4:
        return builder_.floating(step / 3.0);
      case 5:
        return builder_.interned(text);
      case 6:
        return vocabulary_ == Vocabulary::kRecorder ? builder_.interned("y")
                                                    : builder_.string(text);
      case 7:
        return builder_.tuple({});
      case 8:
        return builder_.tuple({a});
      case 9:
        return builder_.tuple({a, b, c});
      case 10:
        return builder_.tuple({a, b, c, a});
      case 11:
        return grows(builder_.list({a, b}));
      case 12:
        return grows(builder_.dict({{a, b}}));
      default:
        return grows(builder_.list());
    }
  }

  Value special(unsigned choice, std::uint32_t step, Value a, Value b,
                Value c) {
    const bool newer = vocabulary_ == Vocabulary::kProtocol4;
    const std::string text(step % 400, '\xe9');
    switch (choice) {
      case 14:
        return builder_.big_integer(text + "123456789");
      case 15:
        return builder_.legacy_string(text);
      case 16:
        return builder_.global("m", text);
      case 17:
        return builder_.persistent(a);
      case 18:
        return Builder::extension(step % 100'000 + 1);
      case 19:
        return grows(builder_.reduce(a, builder_.tuple({b})));
      case 20:
        return grows(builder_.new_object(a, b));
      case 21:
        return newer ? grows(builder_.new_object(a, b, c)) : a;
      case 22:
        return newer ? builder_.bytes(text) : a;
      case 23:
        return newer ? grows(builder_.set({a, b})) : a;
      case 24:
        return newer ? builder_.frozen_set({a}) : a;
      default:
        return grows(builder_.list(std::vector<Value>(step % 2100, a)));
    }
  }

  void grow(Value target, Value item, Value other) {
    if (target.is(Kind::kDict))
      return builder_.set_item(target, item, other);
    builder_.append(target, item);
    if (target.is(Kind::kObject)) {
      builder_.set_item(target, item, other);
      builder_.add_state(target, other);
    }
  }

  Value grows(Value value) {
    growing_.push_back(value);
    return value;
  }

  Value pick(std::uint32_t number) const {
    return made_.empty() ? Value::none() : made_[number % made_.size()];
  }

  Vocabulary vocabulary_;
  Builder builder_;
  std::vector<Value> made_;
  std::vector<Value> growing_;
};

RC_GTEST_PROP(Writer, BringsEveryGraphBackInProtocol2,
              (const std::vector<std::uint32_t>& steps)) {
  GraphMaker maker(Vocabulary::kProtocol2);
  RC_ASSERT(survives(maker.make(steps), {.protocol = 2}));
}

RC_GTEST_PROP(Writer, BringsEveryGraphBackInProtocol4,
              (const std::vector<std::uint32_t>& steps)) {
  GraphMaker maker(Vocabulary::kProtocol4);
  RC_ASSERT(survives(maker.make(steps), {.protocol = 4}));
}

RC_GTEST_PROP(RecorderWriter, BringsEveryDumpBack,
              (const std::vector<std::uint32_t>& steps)) {
  GraphMaker maker(Vocabulary::kRecorder);
  RC_ASSERT(survives(maker.make(steps), {.dialect = Dialect::kRecorder}));
}

// `wrap` adds this many levels at once.
void expect_million_survive(int levels,
                            const std::function<Value(Builder&, Value)>& wrap,
                            const std::vector<WriteOptions>& all_options) {
  Builder builder;
  Value value = builder.list();
  for (int depth = 0; depth < 1'000'000; depth += levels)
    value = wrap(builder, value);
  for (const WriteOptions& options : all_options)
    EXPECT_TRUE(survives(value, options)) << "protocol " << options.protocol;
}

const WriteOptions kTwo{.protocol = 2};
const WriteOptions kFour{.protocol = 4};
const WriteOptions kDump{.dialect = Dialect::kRecorder};

TEST(Writer, WritesAMillionListsInEachOther) {
  expect_million_survive(
      1, [](Builder& builder, Value inner) { return builder.list({inner}); },
      {kTwo, kFour, kDump});
}

TEST(Writer, WritesAMillionDictsInEachOther) {
  expect_million_survive(1,
                         [](Builder& builder, Value inner) {
                           return builder.dict({{Value::none(), inner}});
                         },
                         {kTwo, kFour, kDump});
}

TEST(Writer, WritesAMillionTuplesInEachOther) {
  expect_million_survive(
      1, [](Builder& builder, Value inner) { return builder.tuple({inner}); },
      {kTwo, kFour, kDump});
}

TEST(Writer, WritesAMillionObjectsInEachOther) {
  expect_million_survive(1,
                         [](Builder& builder, Value inner) {
                           const Value object =
                               builder.reduce(Value::none(), Value::none());
                           builder.add_state(object, inner);
                           return object;
                         },
                         {kTwo, kFour});
}

TEST(Writer, WritesAMillionIdsSetsAndCallsInEachOther) {
  expect_million_survive(
      4,
      [](Builder& builder, Value inner) {
        return builder.frozen_set({builder.set({builder.persistent(
            builder.new_object(inner, builder.tuple({inner})))})});
      },
      {kFour});
}

TEST(Writer, WritesATupleThatAThousandListsHold) {
  // Each list writes the tuple again: quadratic, as in Python.
  Builder builder;
  std::vector<Value> lists;
  for (int i = 0; i < 1000; ++i)
    lists.push_back(builder.list());
  const Value tuple = builder.tuple(lists);
  for (const Value& list : lists)
    builder.append(list, tuple);
  EXPECT_TRUE(survives(tuple, kTwo));
  EXPECT_TRUE(survives(tuple, kFour));
}

}  // namespace
}  // namespace postflight
