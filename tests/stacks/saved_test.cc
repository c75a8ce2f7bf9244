#include "stacks/saved.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace postflight {
namespace {

using ::testing::ElementsAre;

const std::string kStacks = TEST_DATA "/stacks/";

// One line for each thread: "rank 5 4716 MainThread waiting: read
// (dataset.py:88) < main (train.py:80)".
std::vector<std::string> told(const Result<std::vector<ProcessStacks>>& read) {
  std::vector<std::string> lines;
  if (!read)
    return {std::string(read.error().message())};
  for (const ProcessStacks& process : *read)
    for (const ThreadStack& thread : process.threads) {
      std::string line =
          fmt::format("rank {} {} {} {}:", process.rank, thread.tid,
                      thread.name, thread_state_name(thread.state));
      std::string_view before = " ";
      for (const StackFrame& frame : thread.frames) {
        line += before;
        line += frame_text(frame);
        before = " < ";
      }
      lines.push_back(line);
    }
  return lines;
}

Result<std::vector<ProcessStacks>> read_text(std::string_view text,
                                             std::string_view name = "x") {
  return read_saved_stacks(as_bytes(text), name);
}

Result<std::vector<ProcessStacks>> read_sample(const std::string& name) {
  const Result<MappedFile> file = MappedFile::open(kStacks + name);
  return read_saved_stacks(file->bytes(), name);
}

TEST(SavedStacks, ReadsPySpysText) {
  const auto read = read_sample("py_spy_rank5.txt");
  EXPECT_THAT(
      told(read),
      ElementsAre("rank 5 4716 MainThread waiting: read (dataset.py:88) < "
                  "next_batch (train.py:40) < main (train.py:80) < <module> "
                  "(train.py:91)",
                  "rank 5 4720 loader_0 running: epoll_wait [libc.so.6] < wait "
                  "(threading.py:320) < _bootstrap (threading.py:995)"));
  const ProcessStacks& process = read->front();
  EXPECT_EQ(process.pid, 4716);
  EXPECT_EQ(process.command, "python train.py");
  EXPECT_EQ(process.python, "3.11.2");
  EXPECT_THAT(process.threads[0].frames[0].locals,
              ElementsAre(LocalVariable{"index", "1482"},
                          LocalVariable{"path", "\"/data/shard_17.bin\""}));
}

TEST(SavedStacks, ReadsPySpysJson) {
  EXPECT_THAT(
      told(read_sample("py_spy_rank7.json")),
      ElementsAre("rank 7 4718 MainThread running: step (train.py:52)"));
}

TEST(SavedStacks, ReadsEachDumpOfFaulthandler) {
  constexpr std::string_view kMain =
      "rank 3 0  unknown: step (train.py:3) < main (train.py:6) < <module> "
      "(train.py:7)";
  const auto read = read_sample("faulthandler_rank3.txt");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2U);
  for (const ProcessStacks& process : *read) {
    ASSERT_EQ(process.threads.size(), 2U);
    EXPECT_EQ(process.main_thread(), &process.threads[1]);
  }
  EXPECT_EQ(told(read)[1], kMain);
  EXPECT_EQ(told(read)[3], kMain);
}

TEST(SavedStacks, ReadsTheDebugServersFilesAndPages) {
  EXPECT_THAT(
      told(read_sample("stacks_20260901_120000.txt")),
      ElementsAre("rank 0 0  unknown: wait (threading.py:320) < _bootstrap "
                  "(threading.py:995)",
                  "rank 0 0  running: all_reduce (distributed_c10d.py:2810) < "
                  "step (train.py:52) < <module> (train.py:91)",
                  "rank 1 0  unknown: read (dataset.py:88) < next_batch "
                  "(train.py:40) < <module> (train.py:91)"));
  EXPECT_EQ(read_sample("stacks_20260901_120000.txt")->front().host, "node1");
  EXPECT_THAT(told(read_sample("stacks.html")),
              ElementsAre("rank 0 0  unknown: step (train.py:52) < <module> "
                          "(train.py:91)",
                          "rank 1 0  unknown: read (dataset.py:88)"));
}

// thread apply all bt, then thread apply all py-bt
TEST(SavedStacks, JoinsBothListsOfGdb) {
  constexpr std::string_view kNative =
      "Thread 2 (Thread 0x7f5100 (LWP 31543) \"python3\"):\n"
      "#0  0x00007f51 in clock_nanosleep () at nanosleep.c:48\n"
      "#1  0x00000051 in _PyEval_EvalFrameDefault () at ceval.c:4772\n"
      "\n"
      "Thread 1 (Thread 0x7f5101 (LWP 31520) \"python3\"):\n"
      "#0  futex_wait () at futex.c:57\n"
      "#1  0x00000052 in _PyEval_EvalFrameDefault () at ceval.c:4772\n"
      "\n";
  constexpr std::string_view kPython =
      "Thread 2 (Thread 0x7f5100 (LWP 31543) \"python3\"):\n"
      "Traceback (most recent call first):\n"
      "  File \"/job/train.py\", line 3, in loader\n"
      "    time.sleep(1000)\n"
      "\n"
      "Thread 1 (Thread 0x7f5101 (LWP 31520) \"python3\"):\n"
      "Traceback (most recent call first):\n"
      "  File \"/job/train.py\", line 5, in read\n"
      "    ev.wait()\n";
  EXPECT_THAT(
      told(read_text(fmt::format("{}{}", kNative, kPython))),
      ElementsAre("rank -1 31543 python3 unknown: clock_nanosleep "
                  "[nanosleep.c:48] < loader (train.py:3)",
                  "rank -1 31520 python3 unknown: futex_wait [futex.c:57] < "
                  "read (train.py:5)"));
  const auto twice = read_text(fmt::format("{}{}", kNative, kNative));
  ASSERT_TRUE(twice);
  ASSERT_EQ(twice->size(), 2U);  // two dumps
  EXPECT_EQ((*twice)[0].threads.size(), 2U);
  EXPECT_EQ((*twice)[1].threads.size(), 2U);
  EXPECT_EQ((*twice)[1].threads[1].tid, 31520);
}

TEST(SavedStacks, ReadsGdbsNativeAndPythonFrames) {
  EXPECT_THAT(
      told(read_sample("gdb.txt")),
      ElementsAre("rank -1 20323 python3 unknown: "
                  "__futex_abstimed_wait_common64 [futex-internal.c:57] < "
                  "__GI___futex_abstimed_wait_cancelable64 "
                  "[futex-internal.c:139] < PyThread_acquire_lock_timed",
                  "rank -1 20316 python3 unknown: __GI___clock_nanosleep "
                  "[clock_nanosleep.c:48] < ?? < PyObject_Vectorcall "
                  "[libpython3.11.so.1.0] < step (train.py:3) < main "
                  "(train.py:6) < <module> (train.py:7)"));
}

TEST(SavedStacks, ReadsThemAmidALogWithRanks) {
  EXPECT_THAT(
      told(read_text(
          "[rank1]: loss 0.5\n"
          "[rank1]: Current thread 0x00007f1c00000040 (most recent call "
          "first):\n"
          "[rank1]:   File \"/x/a.py\", line 3 in f\n"
          "[rank1]: done\n"
          "[rank1]:   File \"/x/a.py\", line 4 in not_a_stack\n"
          "[rank0]: Current thread 0x00007f1c00000040 (most recent call "
          "first):\n"
          "[rank0]:   File \"/x/a.py\", line 5 in g\n")),
      ElementsAre("rank 1 0  running: f (a.py:3)",
                  "rank 0 0  running: g (a.py:5)"));
}

TEST(SavedStacks, SaysWhatItWouldRead) {
  EXPECT_THAT(told(read_text("hello\n", "x.txt")),
              ElementsAre("x.txt: no stacks found; give the output of py-spy "
                          "dump, faulthandler, torch's debug server, gdb or "
                          "postflight stacks --json"));
  EXPECT_FALSE(read_text("[{\"a\": 1"));
  // Wrong types are as good as nothing.
  EXPECT_THAT(told(read_text("[{\"frames\": 1, \"pid\": \"a\"}, 2]")),
              ElementsAre("rank -1 0  unknown:"));
}

TEST(SavedStacks, SurvivesEveryPrefixAndEveryChangedByte) {
  std::mt19937 random(1);
  for (const std::string name :
       {"py_spy_rank5.txt", "py_spy_rank7.json", "faulthandler_rank3.txt",
        "stacks.html", "gdb.txt", "stacks_20260901_120000.txt"}) {
    const Result<MappedFile> file = MappedFile::open(kStacks + name);
    const std::string text(as_text(file->bytes()));
    for (std::size_t size = 0; size < text.size(); ++size) {
      (void)read_text(text.substr(0, size), name);
      std::string changed = text;
      changed[size] = static_cast<char>(random());
      (void)read_text(changed, name);
    }
  }
}

TEST(SavedStacks, FindsTheRankInAName) {
  EXPECT_EQ(rank_in_name("/x/stacks_rank12.txt"), 12);
  EXPECT_EQ(rank_in_name("rank_3"), 3);
  EXPECT_EQ(rank_in_name("Rank=4.json"), 4);
  EXPECT_EQ(rank_in_name("/rank7/stacks.txt"), -1);
  EXPECT_EQ(rank_in_name("frank.txt"), -1);
  EXPECT_EQ(rank_in_name("rank99999999999999999999"), -1);
}

}  // namespace
}  // namespace postflight
