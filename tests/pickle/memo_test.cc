#include "pickle/memo.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

// One after the other as writers number them, again, with gaps, and far off.
rc::Gen<std::uint64_t> key_from(std::uint64_t next) {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  constexpr std::uint64_t kFar = 1'000'000;
  return rc::gen::weightedOneOf<std::uint64_t>(
      {{12, rc::gen::just(next)},
       {2, rc::gen::inRange<std::uint64_t>(0, next + 1)},
       {2, rc::gen::inRange<std::uint64_t>(next, next + 2 * Memo::kNear)},
       {1, rc::gen::element<std::uint64_t>(Memo::kNear + 0, kFar + 0,
                                           kLast + 0)}});
}

RC_GTEST_PROP(Memo, IsAMap, ()) {
  Memo memo;
  std::map<std::uint64_t, std::uint64_t> model;
  std::uint64_t next = 0;
  const int puts = *rc::gen::inRange(0, 900);
  for (int i = 0; i < puts; ++i) {
    const std::uint64_t key = *key_from(next);
    next = key < 100'000 ? key + 1 : next;
    const Value value = Value::small(i);
    memo.remember(key, value);
    model[key] = value.bits();
    RC_ASSERT(memo.count() == model.size());
  }
  for (const auto& [known, bits] : model) {
    const Value* const found = memo.find(known);
    RC_ASSERT(found != nullptr);
    RC_ASSERT(found->bits() == bits);
    if (!model.contains(known + 1))
      RC_ASSERT(memo.find(known + 1) == nullptr);
  }
  for (std::uint64_t near = 0; near < Memo::kNear; ++near)
    RC_ASSERT(Memo::is_empty(memo.slots()[near]) ==
              (memo.find(near) == nullptr));
  memo.clear();
  RC_ASSERT(memo.count() == 0U);
  for (const auto& [known, bits] : model)
    RC_ASSERT(memo.find(known) == nullptr);
}

}  // namespace
}  // namespace postflight
