#include "joblog/host_map.h"

#include "flight/model/rank_set.h"
#include "joblog/node_list.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "a 0-1; b 2-3", in the order of the list.
std::string shown(const HostMap& map) {
  std::string text;
  for (const std::string& host : map.hosts()) {
    text += text.empty() ? "" : "; ";
    text += host + " " + rank_set_text(map.ranks_on(host));
  }
  return text;
}

std::string read(std::string_view text,
                 std::optional<std::uint64_t> world_size = {},
                 const Limits& limits = {}) {
  const Result<HostMap> map = read_host_map(text, world_size, limits);
  return map ? shown(*map) : std::string(map.error().message());
}

TEST(NodeList, KeepsLeadingZeros) {
  const auto hosts = expand_node_list("gpu[001-003,7,09-10],login");
  ASSERT_TRUE(hosts);
  EXPECT_THAT(*hosts, ElementsAre("gpu001", "gpu002", "gpu003", "gpu7", "gpu09",
                                  "gpu10", "login"));
}

TEST(NodeList, CountsTheLastBracketFastest) {
  const auto hosts = expand_node_list("r[1-2]n[08-09]-ib");
  ASSERT_TRUE(hosts);
  EXPECT_THAT(*hosts,
              ElementsAre("r1n08-ib", "r1n09-ib", "r2n08-ib", "r2n09-ib"));
}

TEST(NodeList, GrowsPastItsWidth) {
  const auto hosts = expand_node_list("n[8-11]");
  ASSERT_TRUE(hosts);
  EXPECT_THAT(*hosts, ElementsAre("n8", "n9", "n10", "n11"));
}

std::string node_list_error(std::string_view list) {
  const auto hosts = expand_node_list(list);
  return hosts ? "" : std::string(hosts.error().message());
}

TEST(NodeList, SaysWhatIsWrong) {
  EXPECT_EQ(node_list_error("a[1-"),
            "the node list 'a[1-' has a [ without a ]");
  EXPECT_EQ(node_list_error("a1]"), "the node list 'a1]' has a ] without a [");
  EXPECT_EQ(node_list_error("a[]"),
            "'' in the node list 'a[]' is neither a number nor a range");
  EXPECT_EQ(node_list_error("a[1-x]"),
            "'1-x' in the node list 'a[1-x]' is neither a number nor a range");
  EXPECT_EQ(node_list_error("a[3-1]"),
            "the range '3-1' in the node list 'a[3-1]' ends before it begins");
  EXPECT_EQ(node_list_error("a,,b"), "the node list 'a,,b' has an empty item");
}

TEST(NodeList, RefusesToGrowWithoutEnd) {
  const char* const more =
      " brings the list to more than 100000 hosts, the most allowed";
  EXPECT_EQ(node_list_error("a[0-999999999999]"),
            std::string("'a[0-999999999999]'") + more);
  EXPECT_EQ(node_list_error("a[0-999]b[0-999]c[0-999]"),
            std::string("'a[0-999]b[0-999]c[0-999]'") + more);
  EXPECT_EQ(node_list_error("a[0-99999],b"), std::string("'b'") + more);
  EXPECT_EQ(node_list_error("a[0-99999]"), "");
  EXPECT_EQ(node_list_error(std::string(300, 'a')),
            "the host name '" + std::string(80, 'a') +
                "...' is longer than 255 bytes");
}

TEST(TaskCounts, AreForEachHost) {
  const auto counts = expand_task_counts("8(x2),4,2(x1)", 4);
  ASSERT_TRUE(counts);
  EXPECT_THAT(*counts, ElementsAre(8, 8, 4, 2));
  const auto single = expand_task_counts("8", 3);
  ASSERT_TRUE(single);
  EXPECT_THAT(*single, ElementsAre(8, 8, 8));
}

TEST(TaskCounts, MustFitTheHosts) {
  const auto error = [](std::string_view text) {
    const auto counts = expand_task_counts(text, 4);
    return counts ? "" : std::string(counts.error().message());
  };
  EXPECT_EQ(error("8(x3)"),
            "the tasks per node '8(x3)' are for 3 of the 4 hosts listed");
  EXPECT_EQ(error("8(x5)"),
            "the tasks per node '8(x5)' are for more than the 4 hosts listed");
  EXPECT_EQ(error("8(x18446744073709551615)"),
            "'8(x18446744073709551615)' is not a valid number of tasks per "
            "node: give 8 or 8(x4),2");
  EXPECT_EQ(error("1000000(x4)"),
            "the tasks per node '1000000(x4)' add up to more than 1000000 "
            "ranks, the most allowed");
}

TEST(HostMap, ReadsAHostfile) {
  EXPECT_EQ(
      read("# two nodes\nnode1 slots=2\n\nnode2 slots=4 max_slots=8 # x\n"),
      "node1 0-1; node2 2-5");
  EXPECT_EQ(read("node1:2\r\nuser@node2:1\r\n"), "node1 0-1; node2 2");
}

TEST(HostMap, ReadsAHostForEachRank) {
  EXPECT_EQ(read("a\na\nb\nb\n"), "a 0-1; b 2-3");
  EXPECT_EQ(read("a\nb\na\nb"), "a 0,2; b 1,3");
}

TEST(HostMap, DividesRanksEvenlyWithoutCounts) {
  EXPECT_EQ(read("a\nb\n"), "a 0; b 1");
  EXPECT_EQ(read("a\nb\n", 8), "a 0-3; b 4-7");
  EXPECT_EQ(read("node[1-2]", 4), "node1 0-1; node2 2-3");
  // Here every line is a rank, whatever the number of them.
  EXPECT_EQ(read("a\na\nb\n", 9), "a 0-1; b 2");
  EXPECT_EQ(read("a\nb\n", 9),
            "9 ranks cannot be divided evenly among 2 hosts: give the number "
            "for each, as in \"node1 slots=8\"");
}

TEST(HostMap, ReadsRanksAndHosts) {
  EXPECT_EQ(read("0 a\n1 a\n7 b\n"), "a 0-1; b 7");
  EXPECT_EQ(read("a 0-3\nb 4-7\n"), "a 0-3; b 4-7");
  EXPECT_EQ(read("a\t0-1,4\nb\t2,3"), "a 0-1,4; b 2-3");
  EXPECT_EQ(read("0, a\n1, b\n"), "a 0; b 1");
  EXPECT_EQ(read("b,0\na,1\n"), "b 0; a 1");
}

TEST(HostMap, ReadsATableWithAHeader) {
  EXPECT_EQ(read("local_rank,Rank,hostname\n0,8,\"a\"\n1,9,a\n0,3,b\n"),
            "a 8-9; b 3");
  EXPECT_EQ(read("rank host gpu\n0 a\n"), "a 0");
  EXPECT_EQ(read("gpu,rank,host\n0 a\n"),
            "line 2: '0 a' has fewer columns than the header");
}

TEST(HostMap, ReadsSlurmsLists) {
  EXPECT_EQ(read("node[001-002,007] x2"),
            "node001 0-1; node002 2-3; node007 4-5");
  EXPECT_EQ(read("node[1-2]x2"), "node1 0-1; node2 2-3");
  EXPECT_EQ(read("node[1-2] ntasks-per-node=2"), "node1 0-1; node2 2-3");
  EXPECT_EQ(read("node[1-2] 2"), "node1 0-1; node2 2-3");
  EXPECT_EQ(read("node[1-2],login\n8(x2),2\n"),
            "node1 0-7; node2 8-15; login 16-17");
  EXPECT_EQ(read("a,b 2(x2)"), "a 0-1; b 2-3");
  EXPECT_EQ(read("a,b\n2"), "a 0-1; b 2-3");
}

TEST(HostMap, ReadsSlurmsVariables) {
  EXPECT_EQ(read("SLURM_JOB_ID=17\nexport SLURM_NODELIST=n[1-9]\n"
                 "SLURM_TASKS_PER_NODE='2(x2)'\n"
                 "SLURM_JOB_NODELIST=\"n[1-2]\"\n"),
            "n1 0-1; n2 2-3");
}

TEST(HostMap, FindsRanksByTheirPlaceOnAHost) {
  const Result<HostMap> map = read_host_map("b 4-5\na 0,7\n");
  ASSERT_TRUE(map);
  EXPECT_EQ(map->size(), 4U);
  EXPECT_EQ(map->host_of({7}), "a");
  EXPECT_EQ(map->host_of({3}), "");
  EXPECT_EQ(map->host_of({-1}), "");
  EXPECT_EQ(map->rank_at("a", 1), Rank{7});
  EXPECT_EQ(map->rank_at("b", 0), Rank{4});
  EXPECT_EQ(map->rank_at("b", 2), std::nullopt);
  EXPECT_EQ(map->rank_at("b", -1), std::nullopt);
  EXPECT_EQ(map->rank_at("", 0), std::nullopt);
  EXPECT_EQ(map->rank_at("c", 0), std::nullopt);
  EXPECT_THAT(map->ranks_on("c"), IsEmpty());
  const Result<HostMap> single = read_host_map("a slots=2");
  ASSERT_TRUE(single);
  EXPECT_EQ(single->rank_at("", 1), Rank{1});
}

TEST(HostMap, SaysWhichLineIsWrong) {
  EXPECT_EQ(read(""), "no hosts are listed");
  EXPECT_EQ(read("# nothing\n"), "no hosts are listed");
  EXPECT_EQ(read("a slots=2\nb slots=x\n"),
            "line 2: 'slots=x' is not a valid number of slots");
  EXPECT_EQ(read("a 0\nb\n"),
            "line 2: 'b' has no rank, but the lines before it do");
  EXPECT_EQ(read("a\nb 1\n"),
            "line 2: 'b' has a rank, but the lines before it do not");
  EXPECT_EQ(read("a 0\nb 0\n"), "rank 0 is on both a and b");
  EXPECT_EQ(read("a 5-3\n"), "line 1: '5-3' is neither a rank nor a range");
  EXPECT_EQ(
      read("a b c\n"),
      "line 1: 'a b c' is not valid: give \"host slots=8\", \"rank host\", "
      "\"host 0-7\" or \"node[1-4] x8\"");
  EXPECT_EQ(read("x\n\nnode[1-2]\n"),
            "line 3: the node list does not say how many ranks each host has: "
            "add the number, as in \"node[1-4] x8\"");
  EXPECT_EQ(read("node[1-2]\n\n8(x3)\n"),
            "line 3: the tasks per node '8(x3)' are for more than the 2 hosts "
            "listed");
  EXPECT_EQ(read("a\x01 0\n"), "line 1: 'a\x01' is not a valid host name");
  EXPECT_EQ(read("a 0-4000000000"),
            "line 1: '0-4000000000' is neither a rank nor a range");
  EXPECT_EQ(read("a 0-2000000000"),
            "line 1: more than 1000000 ranks are listed, the most allowed");
  EXPECT_EQ(read("a slots=2000000000"),
            "more than 1000000 ranks are listed, the most allowed");
  EXPECT_EQ(read("a\nb\nc\n", {}, {.max_listed_hosts = 2}),
            "line 3: more than 2 hosts are listed, the most allowed");
}

// Nothing to check but that it comes back, and keeps its promises.
void read_anything(std::string_view text) {
  const Limits limits{.max_listed_hosts = 50, .max_listed_ranks = 200};
  const Result<HostMap> map = read_host_map(text, 16, limits);
  if (!map)
    return;
  ASSERT_LE(map->hosts().size(), 50U);
  ASSERT_LE(map->size(), 200U);
  std::size_t ranks = 0;
  for (const std::string& host : map->hosts())
    for (const Rank rank : map->ranks_on(host)) {
      ASSERT_EQ(map->host_of(rank), host);
      ++ranks;
    }
  ASSERT_EQ(ranks, map->size());
}

TEST(HostMap, SurvivesEveryPrefixAndEveryFlippedByte) {
  const std::string_view samples[] = {
      "# a hostfile\nnode1 slots=8 max_slots=8\nnode2:8\nnode3\n",
      "rank,host\n0,a\n1-3,b\n", "a 0-3,5\n4 b\n",
      "SLURM_JOB_NODELIST=n[01-03,7]m[1-2]\nSLURM_TASKS_PER_NODE=8(x7),4\n",
      "gpu[001-004]x8"};
  for (const std::string_view sample : samples) {
    for (std::size_t size = 0; size <= sample.size(); ++size)
      read_anything(sample.substr(0, size));
    for (std::size_t i = 0; i < sample.size(); ++i)
      for (int byte = 0; byte < 256; ++byte) {
        std::string flipped(sample);
        flipped[i] = static_cast<char>(byte);
        read_anything(flipped);
      }
  }
}

TEST(HostMap, SurvivesRandomText) {
  std::mt19937 random(4);
  constexpr std::string_view kPieces = "ab019-,[]x() \t\n:=#@";
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random() % 40, ' ');
    for (char& c : text)
      c = random() % 20 == 0 ? static_cast<char>(random())
                             : kPieces[random() % kPieces.size()];
    read_anything(text);
  }
}

}  // namespace
}  // namespace postflight
