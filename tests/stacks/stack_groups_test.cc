#include "stacks/stack_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using ::testing::ElementsAre;

// Outermost first, as one reads a tree: "main step".
ProcessStacks at(std::int32_t rank, std::vector<std::string> functions) {
  ProcessStacks process = {.rank = rank, .threads = {{.python = true}}};
  for (const std::string& function : functions)
    process.threads[0].frames.insert(
        process.threads[0].frames.begin(),
        {.function = function, .file = "/home/a.py", .line = 1});
  return process;
}

std::vector<std::string> lines(const std::vector<ProcessStacks>& processes) {
  std::vector<std::string> told;
  for (const StackTreeLine& line : stack_tree(group_stacks(processes))) {
    std::string text(line.depth, ' ');
    text += line.frame.function;
    if (!line.processes.empty())
      text += ": " + processes_label(processes, line.processes);
    told.push_back(text);
  }
  return told;
}

TEST(StackGroups, PutTheOddOnesFirst) {
  const std::vector<ProcessStacks> all = {at(0, {"main", "step"}),
                                          at(1, {"main", "read"}),
                                          at(2, {"main", "step"})};
  const std::vector<StackGroup> groups = group_stacks(all);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[0].processes, ElementsAre(1));
  EXPECT_TRUE(groups[0].odd);
  EXPECT_THAT(groups[1].processes, ElementsAre(0, 2));
  EXPECT_FALSE(groups[1].odd);
}

TEST(StackGroups, CallNobodyOddWithoutAMajority) {
  const std::vector<StackGroup> groups =
      group_stacks({at(0, {"a"}), at(1, {"b"})});
  EXPECT_FALSE(groups[0].odd);
  EXPECT_FALSE(groups[1].odd);
}

TEST(StackGroups, IgnoreWhereALibraryFunctionIs) {
  std::vector<ProcessStacks> all = {at(0, {"main"}), at(1, {"main"})};
  for (std::int32_t i : {0, 1})
    all[static_cast<std::size_t>(i)].threads[0].frames.insert(
        all[static_cast<std::size_t>(i)].threads[0].frames.begin(),
        {.function = "wait", .file = "/x/site-packages/y.py", .line = i + 1});
  EXPECT_EQ(group_stacks(all).size(), 1U);
}

TEST(StackGroups, MakeATree) {
  EXPECT_THAT(
      lines({at(0, {"main", "step", "reduce"}), at(1, {"main", "read", "open"}),
             at(2, {"main", "step", "reduce"}),
             at(3, {"main", "step", "gather"})}),
      ElementsAre("main: ranks 0-3", " read: rank 1", " open",
                  " step: ranks 0,2-3", "  gather: rank 3",
                  "  reduce: ranks 0,2"));
  EXPECT_THAT(lines({at(4, {"main", "step"}), at(5, {"main"})}),
              ElementsAre("main: ranks 4-5", " step: rank 4"));
  EXPECT_THAT(lines({}), ElementsAre());
}

}  // namespace
}  // namespace postflight
