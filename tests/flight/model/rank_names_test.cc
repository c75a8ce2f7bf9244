#include "flight/model/rank_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flight/model/member_list.h"
#include "flight/model/rank_set.h"

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
  const std::vector<std::string> files = {"x/a_1_2", "x/b_3"};
  EXPECT_THAT(*read_ranks(files, {.prefix = "a_1_"}),
              ElementsAre(ElementsAre(Rank{2}), IsEmpty()));
}

TEST(RankNames, TakesTheGroupOfAPattern) {
  const std::vector<std::string> files = {"w3g4", "other"};
  EXPECT_THAT(*read_ranks(files, {.pattern = "w([0-9]+)g"}),
              ElementsAre(ElementsAre(Rank{3}), IsEmpty()));
  const auto refused = read_ranks(files, {.pattern = "w[0-9]+"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "the rank pattern 'w[0-9]+' has no group in parentheses for the "
            "rank");
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

TEST(MemberList, ReadsWhatTheRecorderWrites) {
  EXPECT_THAT(*parse_member_list("[0, 1, 10]"),
              ElementsAre(Rank{0}, Rank{1}, Rank{10}));
  EXPECT_THAT(*parse_member_list("[3,1,3]"), ElementsAre(Rank{1}, Rank{3}));
  EXPECT_THAT(*parse_member_list("[]"), IsEmpty());
  EXPECT_FALSE(parse_member_list("[0, 1"));
  EXPECT_FALSE(parse_member_list("__import__('os')"));
  EXPECT_FALSE(parse_member_list("[-1]"));
}

TEST(RankSet, WritesRangesWithStrides) {
  const auto text = [](std::vector<int> values) {
    std::vector<Rank> ranks;
    for (const int value : values)
      ranks.push_back({value});
    return rank_set_text(ranks);
  };
  EXPECT_EQ(text({}), "none");
  EXPECT_EQ(text({5}), "5");
  EXPECT_EQ(text({0, 1, 2, 3, 6, 7}), "0-3,6-7");
  EXPECT_EQ(text({0, 8, 16, 24}), "0-24:8");
  EXPECT_EQ(text({0, 8}), "0,8");
  EXPECT_EQ(text({0, 1, 3, 5, 7}), "0-1,3-7:2");
}

}  // namespace
}  // namespace postflight
