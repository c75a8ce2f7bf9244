#include "flight/model/rank_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RankNames, TakesTheNumberBehindRankOrTheLastOne) {
  EXPECT_THAT(rank_candidates("nccl_trace_rank_12"), ElementsAre(Rank{12}));
  EXPECT_THAT(rank_candidates("trace.rank0"), ElementsAre(Rank{0}));
  EXPECT_THAT(rank_candidates("7"), ElementsAre(Rank{7}));
  EXPECT_THAT(rank_candidates("dump_5.json.gz"), ElementsAre(Rank{5}));
  EXPECT_THAT(rank_candidates("rank_3.node17"), ElementsAre(Rank{3}, Rank{17}));
  EXPECT_THAT(rank_candidates("node17_trace_4.pkl"),
              ElementsAre(Rank{4}, Rank{17}));
  EXPECT_THAT(rank_candidates("readme.txt"), IsEmpty());
  EXPECT_THAT(rank_candidates("trace_99999999999999"), IsEmpty());
}

TEST(RankNames, TakesThePrefixThatWasGiven) {
  const Result<RankNames> names = RankNames::compile({.prefix = "a_1_"});
  ASSERT_TRUE(names);
  EXPECT_THAT(names->candidates("x/a_1_2"), ElementsAre(Rank{2}));
  EXPECT_THAT(names->candidates("x/b_3"), IsEmpty());
}

TEST(RankNames, TakesTheGroupOfAPattern) {
  const Result<RankNames> names = RankNames::compile({.pattern = "w([0-9]+)g"});
  ASSERT_TRUE(names);
  EXPECT_THAT(names->candidates("w3g4"), ElementsAre(Rank{3}));
  EXPECT_THAT(names->candidates("other"), IsEmpty());
  const Result<RankNames> refused = RankNames::compile({.pattern = "w[0-9]+"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "the rank pattern 'w[0-9]+' has no capture group: put the rank "
            "in parentheses");
}

std::vector<std::string> hosts(const std::vector<std::string>& files) {
  std::vector<NamedDump> dumps;
  for (const std::string& file : files)
    dumps.push_back({file, {static_cast<std::int32_t>(dumps.size())}});
  return read_hosts(dumps);
}

TEST(RankNames, FindsHostsInNamesAndFolders) {
  EXPECT_THAT(hosts({"node1-trace_rank_0", "node2-trace_rank_1"}),
              ElementsAre("node1", "node2"));
  EXPECT_THAT(hosts({"trace_rank_0.gpu-a", "trace_rank_1.gpu-b"}),
              ElementsAre("gpu-a", "gpu-b"));
  EXPECT_THAT(hosts({"d/n1/rank_0", "d/n2/rank_1"}), ElementsAre("n1", "n2"));
  EXPECT_THAT(hosts({"d/rank_0", "d/rank_1"}), ElementsAre("", ""));
  EXPECT_THAT(hosts({"d/rank_0"}), ElementsAre(""));
  EXPECT_THAT(hosts({"nccl_trace_rank_0", "node7_trace_rank_1"}),
              ElementsAre("", "node7"));
}

}  // namespace
}  // namespace postflight
