#include "joblog/job_log.h"

#include "base/temporary_folder.h"
#include "flight/model/rank_set.h"

#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using testing::ElementsAre;

std::string sample(std::string_view name) {
  return fmt::format("{}/logs/{}", TEST_DATA, name);
}

// "2 collective_timeout rank 0 of 0,2 #1482 x3: message <frame>", where a * is
// put before the earliest.
std::string shown(const LogEvent& event) {
  std::string text = event.earliest ? "*" : "";
  text += fmt::format("{} {}", event.line, log_event_kind_name(event.kind));
  if (event.rank)
    text += fmt::format(" rank {}", event.rank->value);
  if (event.ranks.size() > 1 || (!event.rank && !event.ranks.empty()))
    text += " of " + rank_set_text(event.ranks);
  if (event.local_rank)
    text += fmt::format(" local {}", event.local_rank->value);
  if (!event.host.empty())
    text += " on " + event.host;
  if (event.number)
    text += fmt::format(" #{}", *event.number);
  if (event.count > 1)
    text += fmt::format(" x{}", event.count);
  if (event.first_cause)
    text += " first";
  text += ": " + event.message.substr(0, 60);
  if (!event.frame.empty())
    text += " <" + event.frame + ">";
  return text;
}

std::vector<std::string> shown(const JobLog& log) {
  std::vector<std::string> lines;
  for (const LogEvent& event : log.events)
    lines.push_back(shown(event));
  return lines;
}

std::vector<std::string> read_log(const std::vector<std::string>& files,
                                  const JobLogOptions& options = {}) {
  const Result<JobLog> log = read_job_logs(files, options);
  if (!log)
    return {std::string(log.error().message())};
  return shown(*log);
}

TEST(JobLog, FindsTheWatchdogsTimeouts) {
  EXPECT_THAT(
      read_log({sample("torch_2_8_hang.log")}),
      ElementsAre(
          "*4 collective_timeout rank 2 of 0,2 #1482 x3: Watchdog caught "
          "collective operation timeout: WorkNCCL(SeqNu",
          "5 watchdog rank 2 of 0,2 x2: failure detected by watchdog at work "
          "sequence id: 1482 PG st",
          "9 collective_timeout rank 1 #77: Watchdog caught collective "
          "operation timeout: WorkNCCL(SeqNu",
          "8 watchdog rank 3: Received a dump signal due to a collective "
          "timeout from rank",
          "10 watchdog rank 0: Some NCCL operations have failed or timed out. "
          "Due to the as"));
}

TEST(JobLog, FindsTheTimeoutsOfOldTorchBehindAProgressBar) {
  EXPECT_THAT(read_log({sample("torch_1_13_hang.log")}),
              ElementsAre("*1 collective_timeout rank 0 of 0,7 #96117 x2: "
                          "Watchdog caught collective operation timeout: "
                          "WorkNCCL(SeqNu",
                          "3 watchdog: Some NCCL operations have failed or "
                          "timed out. Due to the as"));
}

TEST(JobLog, TellsMixedTracebacksApart) {
  EXPECT_THAT(
      read_log({sample("out_of_memory.log")}),
      ElementsAre("*1 gpu_out_of_memory rank 3: torch.OutOfMemoryError: CUDA "
                  "out of memory. Tried to allocat </home/u/train.py:61>",
                  "2 traceback rank 1: RuntimeError: bad record 4711 (it began "
                  "with KeyError: 'labe </home/u/train.py:52>",
                  "39 worker_failed rank 1 local 1 on node2.cluster #1: exit "
                  "code 1 (pid 2628)",
                  "48 worker_failed rank 3 local 3 on node2.cluster #1 first: "
                  "exit code 1 (pid 2630)"));
}

TEST(JobLog, ReadsTorchrunsSummary) {
  EXPECT_THAT(read_log({sample("sigkill.log")}),
              ElementsAre("*18 killed rank 11 local 3 on gpu17 #-9 first: "
                          "Signal 9 (SIGKILL) received by PID 812917"));
  EXPECT_THAT(read_log({sample("error_file.log")}),
              ElementsAre("*6 worker_failed rank 5 local 5 on gpu17 #1 first: "
                          "exit code 1 (pid 917)",
                          "8 traceback rank 5: ValueError: no data in shard 3 "
                          "<train.py:10>"));
}

TEST(JobLog, ReadsTheKernelsLog) {
  EXPECT_THAT(
      read_log({sample("kernel.log")}),
      ElementsAre(
          "*3 xid on gpu-node-7 #79: Xid (PCI:0000:3b:00): 79, "
          "pid='<unknown>', name=<unknown>, G",
          "4 xid on gpu-node-7 #45 x2: Xid (PCI:0000:3b:00): 45, "
          "pid=1818990, name=python3, Ch 0000",
          "6 xid on gpu-node-7 #31: Xid (PCI:0000:dc:00): 31, pid=1818991, "
          "name=python3, Ch 0000",
          "7 xid on gpu-node-7 #12028: SXid (PCI:0000:05:00.0): 12028, "
          "Non-fatal, Link 32 egress no",
          "9 host_out_of_memory on gpu-node-7: Out of memory: Killed process "
          "1234 (python3) total-vm:523456",
          "10 host_out_of_memory on gpu-node-7: Memory cgroup out of memory: "
          "Killed process 1235 (python3) t",
          "11 crash on gpu-node-7: pt_main_thread[4444]: segfault at "
          "7f0c00000010 ip 00007f0c12"));
  EXPECT_THAT(read_log({sample("dmesg.log")}),
              ElementsAre("*2 xid #31: Xid (PCI:0000:01:00): 31, pid=14292, "
                          "name=python, Ch 0000003",
                          "5 xid: NVRM: fallen off the bus and is not "
                          "responding to commands."));
}

TEST(JobLog, TakesTheLabelsOfSrunForRanks) {
  EXPECT_THAT(
      read_log({sample("srun.log")}),
      ElementsAre("*2 host_out_of_memory rank 3: slurmstepd: error: Detected 1 "
                  "oom_kill event in StepId=44057",
                  "3 crash rank 11: Fatal Python error: Segmentation fault",
                  "7 cuda_error rank 2: RuntimeError: CUDA error: an illegal "
                  "memory access was encou <train.py:7>",
                  "12 host_out_of_memory rank 1 of 1-3 on nid001277: srun: "
                  "error: nid001277: tasks 1-3: Out Of Memory",
                  "13 crash rank 11 on nid001278: srun: error: nid001278: task "
                  "11: Segmentation fault (core du",
                  "14 worker_failed rank 9 on nid001278 #1: srun: error: "
                  "nid001278: task 9: Exited with exit code 1",
                  "16 cancelled on nid001277: slurmstepd: error: *** STEP "
                  "440575.0 ON nid001277 CANCELLED "));
}

TEST(JobLog, TakesTheLabelsOfSrunForNodesAboveTorchrun) {
  EXPECT_THAT(
      read_log({sample("srun_torchrun.log")}),
      ElementsAre("*1 traceback rank 3 local 3: ValueError: x <train.py:7>",
                  "4 collective_timeout rank 4 local 0 #3: Watchdog caught "
                  "collective operation timeout: WorkNCCL(SeqNu",
                  "5 crash local 2: Fatal Python error: Aborted",
                  "6 worker_failed local 2 #-6: failed (exitcode: -6) "
                  "local_rank: 2 (pid: 2630) of binary: p",
                  "7 worker_failed on n1 #1: srun: error: n1: task 0: Exited "
                  "with exit code 1"));
}

TEST(JobLog, LooksLocalRanksUpInTheHosts) {
  const Result<HostMap> hosts = read_host_map("n1 slots=4\nn2 slots=4\n");
  ASSERT_TRUE(hosts);
  const std::vector<std::string> events =
      read_log({sample("srun_torchrun.log")}, {.hosts = &*hosts});
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[1].substr(0, 42),
            "4 collective_timeout rank 4 local 0 on n2 ");
  EXPECT_EQ(events[2],
            "5 crash rank 6 local 2 on n2: Fatal Python error: Aborted");
  EXPECT_EQ(events[3].substr(0, 37), "6 worker_failed rank 6 local 2 on n2 ");
}

TEST(JobLog, ReadsWhatMpirunTags) {
  EXPECT_THAT(
      read_log({sample("mpirun_nccl.log")}),
      ElementsAre("*2 nccl_warning rank 4 of 0,4 on H100-2 x2: NCCL WARN "
                  "NET/IB : Got completion from peer 10.0.0.5<53249> ",
                  "4 nccl_warning rank 5 on H100-2: NCCL WARN "
                  "socketStartConnect: Connect to 10.0.0.5<40101> fai",
                  "5 killed rank 4 on H100-2 #-9: mpirun noticed that process "
                  "rank 4 with PID 19989 on node H1"));
}

TEST(JobLog, FindsBarriersAndTransfersOfGloo) {
  EXPECT_THAT(
      read_log({sample("gloo.log")}),
      ElementsAre("*1 gloo_timeout rank 0: Rank 5 successfully reached "
                  "monitoredBarrier, but received e",
                  "2 gloo_timeout rank 0: RuntimeError: [Rank 0]: Ranks 4, 5 "
                  "failed to pass monitoredB <train.py:33>",
                  "8 gloo_timeout rank 4: RuntimeError: "
                  "[/pytorch/third_party/gloo/gloo/transport/tcp/ "
                  "<train.py:40>"));
}

TEST(JobLog, FindsErrorsOfTheDevice) {
  EXPECT_THAT(
      read_log({sample("device_assert.log")}),
      ElementsAre(
          "*1 cuda_error x3: "
          "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1292: indexSe",
          "4 cuda_error rank 0 of 0-1 x2: CUDA error: device-side assert "
          "triggered",
          "6 watchdog rank 1: ProcessGroupNCCL's watchdog got stuck for 600 "
          "seconds withou",
          "7 killed #-9: exits with return code = -9",
          "8 killed: RuntimeError: DataLoader worker (pid 3317) is killed by "
          "sign"));
}

std::string contents(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Files that a test writes.
class JobLogFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  TemporaryFolder folder_ = *TemporaryFolder::create();
};

constexpr std::string_view kError = "CUDA error: unknown error\n";

TEST_F(JobLogFiles, TakesTheRankFromTheFilesName) {
  EXPECT_THAT(read_log({write("a/stderr_rank3.log", kError)}),
              ElementsAre("*1 cuda_error rank 3: CUDA error: unknown error"));
  EXPECT_THAT(read_log({write("b/0.err", kError), write("b/5.err", kError)}),
              ElementsAre("*1 cuda_error rank 0 of 0,5 x2: CUDA error: unknown "
                          "error"));
}

TEST_F(JobLogFiles, TakesNoJobOrNodeForARank) {
  const std::string expected = "1 cuda_error: CUDA error: unknown error";
  EXPECT_THAT(read_log({write("slurm-7.out", kError)}),
              ElementsAre("*" + expected));
  EXPECT_THAT(read_log({write("1234567.out", kError)}),
              ElementsAre("*" + expected));
  EXPECT_THAT(read_log({write("node0.log", kError), write("node1.log", "x")}),
              ElementsAre("*" + expected));
  // The lines say otherwise than the name.
  EXPECT_THAT(read_log({write(
                  "rank0.log",
                  "[rank4]: step\n[rank5]: step\nCUDA error: unknown error")}),
              ElementsAre("*3 cuda_error: CUDA error: unknown error"));
}

TEST_F(JobLogFiles, KnowsTheFoldersOfTorchrun) {
  const std::string file = write("none_x/attempt_0/3/stderr.log", kError);
  EXPECT_THAT(read_log({file}),
              ElementsAre("*1 cuda_error local 3: CUDA error: unknown error"));
  const Result<HostMap> hosts = read_host_map("n slots=8");
  ASSERT_TRUE(hosts);
  EXPECT_THAT(read_log({file}, {.hosts = &*hosts}),
              ElementsAre("*1 cuda_error rank 3 local 3 on n: CUDA error: "
                          "unknown error"));
}

TEST_F(JobLogFiles, OrdersByTimeAcrossFilesAndYears) {
  const std::string late =
      write("late.log", "[rank1]:[E101 00:00:05.0 a.cpp:1] CUDA error: late\n");
  const std::string early =
      write("early.log", "2026-12-31 23:59:59,5 step\nCUDA error: before\n");
  const Result<JobLog> log = read_job_logs(std::vector{late, early});
  ASSERT_TRUE(log);
  EXPECT_THAT(shown(*log),
              ElementsAre("*2 cuda_error: CUDA error: before",
                          "1 cuda_error rank 1: CUDA error: late"));
  EXPECT_EQ(log->events[0].file, early);
  EXPECT_EQ(log->events[0].time, std::nullopt);
  // 2027-01-01 00:00:05
  EXPECT_EQ(log->events[1].time, (LogTime{1'798'761'605'000'000'000, true}));
}

TEST_F(JobLogFiles, MarksNoneAsEarliestWhereTimesAreMissing) {
  EXPECT_THAT(read_log({write("a.log", "2026-12-31 23:59:59 CUDA error: a\n"),
                        write("b.log", "CUDA error: b\n")}),
              ElementsAre("1 cuda_error: CUDA error: a",
                          "1 cuda_error: CUDA error: b"));
}

TEST_F(JobLogFiles, ReadsCompressedLogs) {
  EXPECT_EQ(read_log({sample("kernel.log.gz")}),
            read_log({sample("kernel.log")}));
}

TEST_F(JobLogFiles, ReadsADamagedLogAsFarAsItGoes) {
  const std::string whole = contents(sample("kernel.log.gz"));
  const std::string file =
      write("x.gz", std::string_view(whole).substr(0, whole.size() / 2));
  const Result<JobLog> log = read_job_logs(std::vector{file});
  ASSERT_TRUE(log);
  EXPECT_THAT(log->events.size(),
              testing::AllOf(testing::Gt(0), testing::Lt(7)));
  ASSERT_EQ(log->findings.size(), 1U);
  EXPECT_EQ(log->findings[0].kind, "log_damaged");
  EXPECT_EQ(log->findings[0].where, file);
}

TEST_F(JobLogFiles, SaysThatAFileIsMissing) {
  const Result<JobLog> log =
      read_job_logs(std::vector<std::string>{"/nonexistent/x.log"});
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message(),
            "cannot open /nonexistent/x.log: No such file or directory");
}

TEST_F(JobLogFiles, KeepsToItsLimits) {
  std::string text;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b)
      text += fmt::format("[rank{}]: CUDA error: {}{}{}\n", b - 'a', a, b,
                          std::string(3000, 'x'));
  const Limits limits{.max_log_line_bytes = 2000,
                      .max_log_message_bytes = 40,
                      .max_log_events = 10,
                      .max_log_event_ranks = 5};
  const Result<JobLog> log =
      read_job_logs(std::vector{write("x.log", text)}, {.limits = limits});
  ASSERT_TRUE(log);
  EXPECT_EQ(log->events.size(), 10U);
  EXPECT_EQ(log->lines, 26U * 26U);
  std::size_t ranks = 0;
  for (const LogEvent& event : log->events) {
    EXPECT_EQ(event.message.size(), 40U);
    ranks += event.ranks.size();
  }
  EXPECT_EQ(ranks, 5U);
  ASSERT_EQ(log->findings.size(), 1U);
  EXPECT_EQ(log->findings[0].message,
            "666 more lines are omitted: at most 10 events of each kind are "
            "kept");
}

TEST_F(JobLogFiles, FoldsTheSameLineOfManyRanks) {
  std::string text;
  for (int rank = 9'999; rank >= 0; --rank)
    text += fmt::format("[rank{}]: CUDA error: x at 0x{:x}\n", rank, rank);
  EXPECT_THAT(read_log({write("x.log", text)}),
              ElementsAre("*1 cuda_error rank 9999 of 0-9999 x10000: CUDA "
                          "error: x at 0x270f"));
}

TEST_F(JobLogFiles, EndsATracebackWithTheLog) {
  EXPECT_THAT(read_log({write("x.log",
                              "Traceback (most recent call last):\n"
                              "  File \"a.py\", line 7, in f\n    g()")}),
              ElementsAre("*1 traceback: the log ends inside a traceback "
                          "<a.py:7>"));
}

TEST_F(JobLogFiles, IsNotMisledByCodeInATraceback) {
  EXPECT_THAT(read_log({write("x.log",
                              "Traceback (most recent call last):\n"
                              "  File \"a.py\", line 7, in f\n"
                              "    raise RuntimeError(\"CUDA error: no\")\n"
                              "INFO: another process says this\n"
                              "  File \"<frozen importlib>\", line 9, in g\n"
                              "KeyboardInterrupt\n")}),
              ElementsAre("*1 traceback: KeyboardInterrupt <a.py:7>"));
}

void read_anything(const std::string& file, std::string_view text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  const Limits limits{.max_log_line_bytes = 200,
                      .max_log_message_bytes = 50,
                      .max_log_events = 3,
                      .max_log_event_ranks = 20,
                      .max_open_tracebacks = 2};
  const Result<JobLog> log =
      read_job_logs(std::vector{file}, {.limits = limits});
  ASSERT_TRUE(log);
  ASSERT_LE(log->events.size(), 3 * kLogEventKinds);
  for (const LogEvent& event : log->events) {
    ASSERT_LE(event.message.size(), 150U);
    ASSERT_EQ(event.message.find('\n'), std::string::npos);
    ASSERT_GE(event.line, 1U);
    ASSERT_LE(event.ranks.size(), 20U);
  }
}

TEST_F(JobLogFiles, SurvivesEveryPrefixAndFlippedBytes) {
  std::mt19937 random(7);
  for (const auto& entry : std::filesystem::directory_iterator(sample(""))) {
    const std::string text = contents(entry.path().string());
    const std::string file = write("x.log", "");
    for (std::size_t size = 0; size < text.size(); size += 11)
      read_anything(file, std::string_view(text).substr(0, size));
    for (std::size_t i = 0; i < text.size(); i += 13) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(random());
      read_anything(file, flipped);
    }
  }
}

}  // namespace
}  // namespace postflight
