#include "stacks/snapshot.h"

#include <gtest/gtest.h>

namespace postflight {
namespace {

StackFrame at(std::string function, std::string file, std::int32_t line) {
  return {
      .function = std::move(function), .file = std::move(file), .line = line};
}

const StackFrame kStep = at("step", "/home/user/train.py", 52);
const StackFrame kRead = at("read", "/home/user/dataset.py", 88);
const StackFrame kAllReduce =
    at("all_reduce", "/x/site-packages/torch/distributed/distributed_c10d.py",
       2810);
const StackFrame kPoll = {
    .function = "poll", .file = "/lib/libc.so.6", .native = true};

ProcessStacks process(std::int32_t rank, std::vector<StackFrame> frames) {
  return {.rank = rank,
          .threads = {{.tid = 7, .python = true, .frames = std::move(frames)}}};
}

TEST(Snapshot, SaysWhereAUserWouldLook) {
  EXPECT_EQ(place_text({{kRead, kStep}}), "read (dataset.py:88)");
  EXPECT_EQ(place_text({{kAllReduce, kStep}}),
            "all_reduce … step (train.py:52)");
  EXPECT_EQ(place_text({{kPoll, kAllReduce, kStep}}, "..."),
            "all_reduce ... step (train.py:52)");
  EXPECT_EQ(place_text({{kPoll, kAllReduce}}),
            "all_reduce (distributed_c10d.py:2810)");
  EXPECT_EQ(place_text({{kPoll}}), "poll [libc.so.6]");
  EXPECT_EQ(place_text({}), "no frames");
}

TEST(Snapshot, TellsStuckThreadsFromBusyOnes) {
  std::vector<ProcessStacks> all = {process(0, {kRead}), process(1, {kRead}),
                                    process(2, {kStep}), process(0, {kRead}),
                                    process(1, {kStep})};
  join_snapshots(all);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].threads[0].motion, Motion::kStuck);
  EXPECT_EQ(all[1].threads[0].motion, Motion::kBusy);
  EXPECT_EQ(all[1].threads[0].frames.front(), kStep);
  EXPECT_EQ(all[2].threads[0].motion, Motion::kUnknown);
}

TEST(Snapshot, RemembersThatAThreadMovedBefore) {
  std::vector<ProcessStacks> all = {process(0, {kStep}), process(0, {kRead}),
                                    process(0, {kRead})};
  join_snapshots(all);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].threads[0].motion, Motion::kBusy);
}

TEST(Snapshot, DoesNotConfuseProcessesOfTwoHosts) {
  ProcessStacks first = process(-1, {kStep});
  first.pid = 7;
  first.host = "a";
  ProcessStacks second = first;
  second.host = "b";
  std::vector<ProcessStacks> all = {first, second};
  join_snapshots(all);
  EXPECT_EQ(all.size(), 2U);
}

TEST(Snapshot, KnowsTheMainThread) {
  const ThreadStack worker = {
      .tid = 8, .python = true, .frames = {kRead, at("_bootstrap", "t.py", 1)}};
  const ThreadStack main = {.tid = 7, .python = true, .frames = {kStep}};
  ProcessStacks known = {.pid = 7, .threads = {worker, main}};
  EXPECT_EQ(known.main_thread()->tid, 7);
  known.pid = 0;
  EXPECT_EQ(known.main_thread()->tid, 7);
  known.threads = {worker};
  known.threads[0].name = "MainThread";
  EXPECT_EQ(known.main_thread()->tid, 8);
  EXPECT_EQ(ProcessStacks().main_thread(), nullptr);
}

}  // namespace
}  // namespace postflight
