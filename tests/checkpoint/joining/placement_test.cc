#include "checkpoint/joining/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum Placement::Kind;

Stretches first_of(std::vector<std::int64_t> shape, MeshPlace place) {
  const auto found = stretches_of(shape, place);
  EXPECT_TRUE(found) << found.error().message();
  return found ? found->front() : Stretches();
}

std::string refusal_of(std::vector<std::int64_t> shape, MeshPlace place) {
  const auto found = stretches_of(shape, place);
  return found ? "" : std::string(found.error().message());
}

TEST(Placement, DividesAsChunkDoes) {
  // 7 rows over 4 ranks: 2, 2, 2, 1; 5 rows: 2, 2, 1 and none.
  EXPECT_THAT(first_of({7}, {{4}, {2}, {{kShard, 0}}}),
              ElementsAre(Stretch{4, 2}));
  EXPECT_THAT(first_of({7}, {{4}, {3}, {{kShard, 0}}}),
              ElementsAre(Stretch{6, 1}));
  EXPECT_THAT(first_of({5}, {{4}, {3}, {{kShard, 0}}}), IsEmpty());
  EXPECT_THAT(first_of({5}, {{2}, {1}, {{kReplicate}}}),
              ElementsAre(Stretch{0, 5}));
}

TEST(Placement, DividesWhatTheDimensionBeforeLeft) {
  EXPECT_THAT(first_of({8}, {{2, 2}, {1, 0}, {{kShard, 0}, {kShard, 0}}}),
              ElementsAre(Stretch{4, 2}));
  MeshPlace reversed{{2, 2}, {1, 0}, {{kShard, 0}, {kShard, 0}}};
  reversed.order = {1, 0};
  EXPECT_THAT(first_of({8}, reversed), ElementsAre(Stretch{2, 2}));
}

// Data parallelism over tensor parallelism: the tensor was divided among the
// inner dimension first.
TEST(Placement, StridedShardsAreDividedLast) {
  EXPECT_THAT(first_of({8}, {{2, 2}, {1, 0}, {{kStrided, 0, 2}, {kShard, 0}}}),
              ElementsAre(Stretch{2, 2}));
  // Unevenly: the inner 4 + 3, of which the outer second halves are 2 and 1.
  EXPECT_THAT(first_of({7}, {{2, 2}, {1, 1}, {{kStrided, 0, 2}, {kShard, 0}}}),
              ElementsAre(Stretch{6, 1}));
}

TEST(Placement, StridedShardsByThemselvesHaveSeveralStretches) {
  EXPECT_THAT(first_of({8}, {{2}, {1}, {{kStrided, 0, 2}}}),
              ElementsAre(Stretch{2, 2}, Stretch{6, 2}));
}

TEST(Placement, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal_of({4}, {{2}, {0}, {{kPartial}}}),
              HasSubstr("partial results"));
  EXPECT_THAT(refusal_of({4}, {{2}, {0}, {{kShard, 1}}}),
              HasSubstr("divides dimension 1 of a tensor that has 1"));
  EXPECT_THAT(refusal_of({4}, {{2}, {2}, {{kShard, 0}}}),
              HasSubstr("its rank is at 2 of 2"));
  EXPECT_THAT(refusal_of({4}, {{0}, {0}, {{kShard, 0}}}),
              HasSubstr("its rank is at 0 of 0"));
  EXPECT_THAT(refusal_of({4}, {{2}, {0, 0}, {{kShard, 0}}}),
              HasSubstr("its mesh has 1 dimensions"));
  EXPECT_THAT(refusal_of({4}, {{2}, {0}, {{kStrided, 0, 1 << 20}}}),
              HasSubstr("into 1048576 pieces"));
  MeshPlace twice{{2, 2}, {1, 0}, {{kShard, 0}, {kShard, 0}}};
  twice.order = {1, 1};
  EXPECT_THAT(refusal_of({8}, twice), HasSubstr("not one of its mesh"));
  twice.order = {1};
  EXPECT_THAT(refusal_of({8}, twice), HasSubstr("leaves one out"));
}

}  // namespace
}  // namespace postflight
