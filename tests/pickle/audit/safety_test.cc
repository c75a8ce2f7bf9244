#include "pickle/audit/safety.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

Reason reason(Safety safety, std::string where = "") {
  return {safety, "kind", "sentence", std::move(where)};
}

TEST(SafetyVerdict, IsSafeWithoutAReason) {
  const SafetyVerdict verdict;
  EXPECT_TRUE(verdict.is_safe());
  EXPECT_EQ(verdict.lead(), nullptr);
  EXPECT_EQ(safety_name(verdict.safety()), "SAFE");
}

TEST(SafetyVerdict, IsAsBadAsItsWorstReason) {
  SafetyVerdict verdict;
  verdict.add(reason(Safety::kUnknown));
  verdict.add(reason(Safety::kRunsCode, "first"));
  verdict.add(reason(Safety::kBroken));
  verdict.add(reason(Safety::kRunsCode, "second"));
  EXPECT_EQ(verdict.safety(), Safety::kRunsCode);
  EXPECT_EQ(verdict.lead()->where, "first");
}

TEST(SafetyVerdict, NamesTheItemsOfWhatItMerges) {
  SafetyVerdict inner;
  inner.add(reason(Safety::kUnknown, "byte 3"));
  inner.add(reason(Safety::kDangerous));
  SafetyVerdict outer;
  outer.merge(inner, "data.pkl");
  outer.merge({}, "safe.pkl");
  ASSERT_EQ(outer.reasons().size(), 2u);
  EXPECT_EQ(outer.reasons()[0].where, "data.pkl, byte 3");
  EXPECT_EQ(outer.reasons()[1].where, "data.pkl");
  EXPECT_EQ(outer.safety(), Safety::kDangerous);
}

TEST(SafetyVerdict, KeepsTheFirstOfEachDegree) {
  SafetyVerdict verdict;
  for (int i = 0; i < 100; ++i)
    verdict.add(reason(Safety::kUnknown));
  verdict.add(reason(Safety::kDangerous));
  EXPECT_EQ(verdict.reasons().size(), SafetyVerdict::kMostOfADegree + 1);
  EXPECT_EQ(verdict.omitted(), 80u);
  SafetyVerdict outer;
  outer.merge(verdict);
  outer.merge(verdict);
  EXPECT_EQ(outer.omitted(), 180u);
}

}  // namespace
}  // namespace postflight
