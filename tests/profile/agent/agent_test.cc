#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "profile/engine/agent_image.h"
#include "profile/engine/agent_ring.h"
#include "profile/engine/sample_counts.h"
#include "profile/engine/sampling_loop.h"
#include "profile/phase/helper.h"
#include "profile/python_child.h"

namespace postflight {
namespace {

using ::testing::StartsWith;

// A ring in a file, with a program's side that the test plays.
class AgentRingTest : public ::testing::Test {
 protected:
  AgentRingTest() {
    std::ofstream(path_, std::ios::binary)
        << std::string(kRingDataOffset + kRingBytes, '\0');
    file_.open(path_, std::ios::in | std::ios::out | std::ios::binary);
  }

  template <class T>
  void put(std::size_t at, T value) {
    file_.seekp(static_cast<std::streamoff>(at));
    file_.write(reinterpret_cast<const char*>(&value), sizeof(value));
    file_.flush();
  }
  void set_head(std::uint64_t head) { put(offsetof(RingHeader, head), head); }
  AgentRing ring() const {
    const Descriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    return *AgentRing::map(file.number(), 0, kRingBytes);
  }
  // A sample with one frame and one phase.
  static constexpr std::uint32_t kSize = sizeof(RingRecord) + 24;
  void put_sample(std::size_t at, std::uint32_t size = kSize) {
    const std::size_t start = kRingDataOffset + at;
    put<std::uint32_t>(start + 4, 1);
    put<std::uint64_t>(start + 8, 1000);
    put<std::int32_t>(start + 16, 42);
    put<std::uint16_t>(start + 20, 1);
    put<std::uint16_t>(start + 22, 1);
    put<std::uint64_t>(start + offsetof(RingRecord, weight_ns), 10);
    put<std::uint64_t>(start + offsetof(RingRecord, system_ns), 3);
    put<std::uint64_t>(start + offsetof(RingRecord, cpu_ns), 500);
    put<std::uint64_t>(start + sizeof(RingRecord), 0xc0de);
    put<std::uint64_t>(start + sizeof(RingRecord) + 8, 0x77 | kEntryBit);
    put<std::uint32_t>(start + sizeof(RingRecord) + 16, 8);
    put<std::uint32_t>(start, size);
  }
  // A code with pieces of 8 and `second` bytes, of which 8 are there.
  void put_code(std::uint64_t second) {
    put<std::uint32_t>(kRingDataOffset + 4, kRecordOfCode);
    const std::uint64_t words[] = {0xc0de, 8, 11, 0xbee0, second, 12};
    for (std::size_t i = 0; i < 6; ++i)
      put<std::uint64_t>(kRingDataOffset + sizeof(RingRecord) + 8 * i,
                         words[i]);
    put<std::uint32_t>(kRingDataOffset, sizeof(RingRecord) + 48);
    set_head(sizeof(RingRecord) + 48);
  }
  std::size_t drained() {
    std::size_t count = 0;
    ring_->drain([&count](const AgentSample&) { ++count; });
    return count;
  }

  Result<TemporaryFolder> folder_ = TemporaryFolder::create();
  std::filesystem::path path_ = folder_->path() / "1.ring";
  std::fstream file_;
  std::optional<AgentRing> ring_;
};

TEST_F(AgentRingTest, HandsSamplesOn) {
  ring_.emplace(ring());
  put_sample(0);
  set_head(kSize);
  std::size_t count = 0;
  ring_->drain([&count](const AgentSample& sample) {
    ++count;
    EXPECT_EQ(sample.time_ns, 1000U);
    EXPECT_EQ(sample.tid, 42);
    EXPECT_EQ(sample.weight_ns, 10U);
    EXPECT_EQ(sample.system_ns, 3U);
    EXPECT_EQ(sample.cpu_ns, 500U);
    ASSERT_EQ(sample.phases.size(), 1U);
    EXPECT_EQ(sample.phases[0], 8U);
    RawStack stack;
    sample.to(stack);
    ASSERT_EQ(stack.frames.size(), 1U);
    EXPECT_EQ(stack.frames[0].code, 0xc0deU);
    EXPECT_EQ(stack.frames[0].instruction, 0x77U);
    EXPECT_TRUE(stack.frames[0].entry);
  });
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(drained(), 0U);
}

TEST_F(AgentRingTest, HandsCodesOn) {
  ring_.emplace(ring());
  put_code(5);
  std::vector<std::string> pieces;
  ring_->drain(
      [](const AgentSample&) {},
      [&pieces](std::span<const MemoryCopy> code) {
        for (const auto& [address, bytes] : code)
          pieces.push_back(fmt::format("{:x}: {} {}", address, bytes.size(),
                                       std::to_integer<int>(bytes[0])));
      });
  EXPECT_EQ(pieces, (std::vector<std::string>{"c0de: 8 11", "bee0: 5 12"}));
  EXPECT_NE(ring_->state(), AgentState::kNotPython);
}

TEST_F(AgentRingTest, EndsAtACodeThatDoesNotFit) {
  for (const std::uint64_t size : {std::uint64_t{9}, ~std::uint64_t{0}}) {
    put<std::uint64_t>(offsetof(RingHeader, tail), 0);
    ring_.emplace(ring());
    put_code(size);
    ring_->drain([](const AgentSample&) {},
                 [](std::span<const MemoryCopy>) { ADD_FAILURE(); });
    EXPECT_EQ(ring_->state(), AgentState::kNotPython) << size;
  }
}

TEST_F(AgentRingTest, WaitsForWhatIsBeingWritten) {
  ring_.emplace(ring());
  set_head(kSize);
  EXPECT_EQ(drained(), 0U);
  put_sample(0);
  EXPECT_EQ(drained(), 1U);
}

TEST_F(AgentRingTest, EndsAtWhatDoesNotFit) {
  for (const std::uint32_t size : {7U, 24U, kSize - 8, 1U << 30}) {
    put<std::uint64_t>(offsetof(RingHeader, tail), 0);
    ring_.emplace(ring());
    put_sample(0, size);
    set_head(kSize);
    EXPECT_EQ(drained(), 0U) << size;
    EXPECT_EQ(ring_->state(), AgentState::kNotPython);
  }
  put<std::uint64_t>(offsetof(RingHeader, tail), 0);
  ring_.emplace(ring());
  set_head(kRingBytes + 8);
  EXPECT_EQ(drained(), 0U);
}

TEST_F(AgentRingTest, TakesAnyByteAnywhereInARecord) {
  for (std::size_t at = 0; at < kSize; ++at)
    for (const auto value : {std::byte{0xff}, std::byte{0x7f}, std::byte{16}}) {
      put<std::uint64_t>(offsetof(RingHeader, tail), 0);
      ring_.emplace(ring());
      put_sample(0);
      put(kRingDataOffset + at, value);
      set_head(kSize);
      EXPECT_LE(drained(), 1U);
    }
}

TEST_F(AgentRingTest, JoinsWhatIsKeptOfTheStackBefore) {
  ring_.emplace(ring());
  put_sample(0);
  put_sample(kSize);
  put<std::uint32_t>(kRingDataOffset + kSize + 32, 1);
  put<std::uint64_t>(kRingDataOffset + kSize + sizeof(RingRecord), 0xbeef);
  set_head(2 * kSize);
  std::vector<std::vector<std::uint64_t>> codes;
  ring_->drain([&codes](const AgentSample& sample) {
    RawStack stack;
    sample.to(stack);
    std::vector<std::uint64_t>& all = codes.emplace_back();
    for (const RawFrame& frame : stack.frames)
      all.push_back(frame.code);
  });
  const std::vector<std::vector<std::uint64_t>> expected = {{0xc0de},
                                                            {0xbeef, 0xc0de}};
  EXPECT_EQ(codes, expected);
}

TEST_F(AgentRingTest, CountsWhatRefersToAnUnknownStack) {
  ring_.emplace(ring());
  put_sample(0);
  put<std::uint32_t>(kRingDataOffset + 32, 7);
  put_sample(kSize);
  set_head(2 * kSize);
  EXPECT_EQ(drained(), 1U);
  EXPECT_EQ(ring_->lost(), 1U);
}

TEST_F(AgentRingTest, EndsAtStacksDeeperThanAgentsMakeThem) {
  ring_.emplace(ring());
  put_sample(0);
  put<std::uint32_t>(kRingDataOffset + 32, kMostRingFrames);
  set_head(kSize);
  EXPECT_EQ(drained(), 0U);
  EXPECT_EQ(ring_->state(), AgentState::kNotPython);
}

TEST_F(AgentRingTest, KnowsWhichPythonsTheAgentCanWalk) {
  ring_.emplace(ring());
  PythonLayout layout = *python_layout({3, 10, 0}, {});
  EXPECT_TRUE(ring_->begin(layout, 500, 0));
  layout.frame.size = 300;
  EXPECT_FALSE(ring_->begin(layout, 500, 0));
}

TEST(HandlerTimes, KnowTheirMedian) {
  HandlerTimes times;
  EXPECT_EQ(times.median_ns(), 0U);
  for (const std::uint32_t ns : {500U, 505U, 4'000'000'000U})
    times.add(ns);
  HandlerTimes all;
  all.add(times);
  EXPECT_EQ(all.median_ns(), 510U);
  EXPECT_EQ(all.count(), 3U);
  EXPECT_EQ(all.total_ns(), 4'000'001'005U);
}

// The names of a stack's frames, the innermost first.
std::vector<std::string> names(const Profile& profile, std::uint32_t stack) {
  std::vector<std::string> names;
  for (; stack != 0; stack = profile.stacks[stack].parent)
    names.push_back(
        profile.texts[profile.frames[profile.stacks[stack].frame].name]);
  return names;
}

// Programs that are started with the agent inside.
class AgentTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Samples until there are `samples`, or the program ends.
  Profile profile_of(std::string_view script, std::uint64_t samples,
                     bool native = false) {
    const Result<TemporaryFolder> folder = TemporaryFolder::create();
    const auto nothing = [](const char*) -> std::optional<std::string> {
      return std::nullopt;
    };
    const std::chrono::milliseconds interval(1);
    Result<AgentArena> arena = AgentArena::create(interval, native);
    EXPECT_TRUE(arena);
    for (const auto& environment :
         {install_phase_helper(folder->path(), nothing),
          install_agent(folder->path(), *arena, nothing)})
      for (const std::string& variable : *environment) {
        const std::size_t end = variable.find('=');
        ::setenv(variable.substr(0, end).c_str(),
                 variable.substr(end + 1).c_str(), 1);
      }
    PythonChild child(GetParam(), script);
    for (const char* const name :
         {"PYTHONPATH", "POSTFLIGHT_PHASES", "LD_PRELOAD", "POSTFLIGHT_AGENT"})
      ::unsetenv(name);
    const std::filesystem::path path = folder->path() / "log";
    Result<ProfileLogWriter> log = ProfileLogWriter::create(path, true);
    EXPECT_TRUE(log);
    SamplingLoop loop({.interval = interval,
                       .folder = folder->path(),
                       .arena = &*arena,
                       .native = native},
                      {}, *log);
    loop.add(child.pid(), true);
    EXPECT_TRUE(loop.run(
        [&] { return loop.samples() < samples && !child.has_ended(); }));
    const Result<MappedFile> file = MappedFile::open(path);
    ProfileBuilder builder;
    EXPECT_TRUE(read_profile_log(file->bytes(), "log", {}, builder));
    return std::move(builder.profile());
  }
};

INSTANTIATE_TEST_SUITE_P(Pythons, AgentTest,
                         ::testing::ValuesIn(test_pythons()), python_test_name);

bool in_process(const Profile& profile) {
  return profile.notes.at("engine").starts_with("in-process, ");
}

// As where perf events are refused: everything has to work by the clock, too.
class WithoutPerf : public AgentTest {
 protected:
  WithoutPerf() { ::setenv("POSTFLIGHT_NO_PERF", "1", 1); }
  ~WithoutPerf() override { ::unsetenv("POSTFLIGHT_NO_PERF"); }
};

INSTANTIATE_TEST_SUITE_P(Pythons, WithoutPerf,
                         ::testing::ValuesIn(test_pythons()), python_test_name);

TEST_P(WithoutPerf, FallsBackAndSaysSo) {
  const Profile profile =
      profile_of("def spin():\n    while True: pass\nspin()\n", 200);
  EXPECT_EQ(profile.notes.at("engine"), "in-process, clock thread");
  EXPECT_THAT(
      profile.notes.at("engine_why"),
      StartsWith("perf events are refused (Permission denied); sysctl "));
  EXPECT_EQ(names(profile, profile.samples.back().stack).front(), "spin");
}

constexpr std::string_view kThreadsForksAndPhases =
    R"(import faulthandler, os, sys, threading
from postflight_phase import phase
faulthandler.enable()
def spin_in_thread():
    with phase("in thread"):
        while True: pass
def spin_in_child():
    while os.getppid() == parent: pass
def spin():
    while True: pass
parent = os.getpid()
if os.fork() == 0:
    spin_in_child()
    os._exit(0)
threading.Thread(target=spin_in_thread, daemon=True).start()
with phase("main"):
    spin()
)";

void expect_threads_forks_and_phases(const Profile& profile) {
  std::set<std::string> seen;
  for (const ProfileSample& sample : profile.samples) {
    const auto stack = names(profile, sample.stack);
    seen.insert((stack.empty() ? "" : stack.front()) + " in " +
                profile.phase_name(sample.phase));
    if (!stack.empty() && stack.front() == "spin") {
      EXPECT_EQ(profile.phase_name(sample.phase), "main");
    }
  }
  if (in_process(profile)) {
    EXPECT_EQ(profile.counters.at("lost"), 0U);
  }
  EXPECT_THAT(seen, ::testing::Contains("spin in main"));
  EXPECT_THAT(seen, ::testing::Contains("spin_in_thread in in thread"));
  EXPECT_THAT(seen, ::testing::Contains(StartsWith("spin_in_child in ")));
}

TEST_P(WithoutPerf, FollowsThreadsForksAndPhases) {
  expect_threads_forks_and_phases(profile_of(kThreadsForksAndPhases, 800));
}

// Each child lives for a few milliseconds.
TEST_P(AgentTest, SeesWorkersThatLiveBriefly) {
  const Profile profile = profile_of(R"(import os
def brief():
    for i in range(500_000): pass
def spin():
    while True: pass
for _ in range(20):
    if os.fork() == 0:
        brief()
        os._exit(0)
    os.wait()
spin()
)",
                                     400);
  if (!in_process(profile))
    GTEST_SKIP() << profile.notes.at("engine_why");
  std::set<std::int32_t> seen;
  for (const ProfileSample& sample : profile.samples) {
    const auto stack = names(profile, sample.stack);
    if (!stack.empty() && stack.front() == "brief")
      seen.insert(profile.threads[sample.thread].pid);
  }
  EXPECT_GE(seen.size(), 5U);
  EXPECT_EQ(names(profile, profile.samples.back().stack).front(), "spin");
}

// A signal that is pending while a program becomes another would end it.
constexpr std::string_view kBecomesAnother = R"(import os, sys
end = int(sys.argv[1]) if len(sys.argv) > 1 else 8
for i in range(20000): pass
if end == 0:
    def spin():
        while True: pass
    spin()
os.execv(sys.executable, [sys.executable, "-u", __file__, str(end - 1)])
)";

TEST_P(WithoutPerf, SurvivesBecomingAnotherProgram) {
  const Profile profile = profile_of(kBecomesAnother, 600);
  EXPECT_EQ(names(profile, profile.samples.back().stack).front(), "spin");
}

TEST_P(AgentTest, SurvivesBecomingAnotherProgram) {
  const Profile profile = profile_of(kBecomesAnother, 600);
  EXPECT_EQ(names(profile, profile.samples.back().stack).front(), "spin");
}

// What the program does about faults is its own business.
TEST_P(AgentTest, LeavesFaultsToTheProgram) {
  for (const std::string_view handler :
       {"faulthandler.enable()",
        "signal.signal(signal.SIGSEGV, signal.SIG_DFL)"}) {
    const Profile profile = profile_of(
        fmt::format("import faulthandler, os, signal\n{}\n"
                    "if os.fork() == 0: faulthandler._sigsegv()\n"
                    "pid, status = os.wait()\n"
                    "assert os.WTERMSIG(status) == signal.SIGSEGV\n"
                    "if os.fork() == 0: os.kill(os.getpid(), signal.SIGSEGV)\n"
                    "pid, status = os.wait()\n"
                    "assert os.WTERMSIG(status) == signal.SIGSEGV\n"
                    "seen = []\n"
                    "signal.signal(signal.SIGBUS, lambda *a: seen.append(a))\n"
                    "os.kill(os.getpid(), signal.SIGBUS)\n"
                    "assert seen\n"
                    "def survived():\n"
                    "    while True: pass\n"
                    "survived()\n",
                    handler),
        200);
    EXPECT_EQ(names(profile, profile.samples.back().stack).front(), "survived")
        << handler;
  }
}

// The chain of frames is broken on purpose, which the interpreter does not
// notice until it returns.
TEST_P(AgentTest, SurvivesFramesThatLeadNowhere) {
  if (GetParam() != "/usr/bin/python3")
    GTEST_SKIP() << "the script knows the frames of 3.11";
  const Profile profile = profile_of(R"(import ctypes, sys
assert sys.version_info[:2] == (3, 11)
def inner():
    frame = ctypes.c_uint64.from_address(id(sys._getframe()) + 24).value
    link = ctypes.c_uint64.from_address(frame + 48)
    whole = link.value
    for bad in 0x10, 0x7fff_ffff_f000, 0xdead_0000_0000_0000:
        link.value = bad
        for i in range(2_000_000): pass
    link.value = whole
def outer():
    inner()
outer()
def survived():
    while True: pass
survived()
)",
                                     800);
  if (!in_process(profile))
    GTEST_SKIP() << profile.notes.at("engine_why");
  EXPECT_GT(profile.counters.at("torn"), 10U);
  EXPECT_EQ(names(profile, profile.samples.back().stack).front(), "survived");
}

TEST_P(AgentTest, FollowsThreadsForksAndPhases) {
  expect_threads_forks_and_phases(profile_of(kThreadsForksAndPhases, 800));
}

TEST_P(AgentTest, MixesNoTwoMoments) {
  constexpr std::string_view kScript = R"(def leaf_a(): pass
def leaf_b(): pass
def parent_a():
    leaf_a(); leaf_a(); leaf_a()
def parent_b():
    leaf_b(); leaf_b(); leaf_b()
def generate():
    while True:
        parent_a()
        yield
        parent_b()
for _ in generate():
    pass
)";
  std::size_t leaves = 0;
  std::size_t impossible = 0;
  // On a busy machine few samples find the program in a leaf.
  for (int round = 0; round < 20 && leaves < 200; ++round) {
    const Profile profile = profile_of(kScript, 800);
    if (!in_process(profile))
      GTEST_SKIP() << profile.notes.at("engine_why");
    for (const ProfileSample& sample : profile.samples) {
      const auto stack = names(profile, sample.stack);
      if (stack.size() < 2 || !stack[0].starts_with("leaf_"))
        continue;
      ++leaves;
      impossible += stack[1] == "parent_" + stack[0].substr(5) ? 0 : 1;
    }
  }
  EXPECT_GT(leaves, 20U);
  EXPECT_LE(impossible * 100, leaves);
}

// Each function lives for a fraction of a sample, and the next one is made in
// its place.
TEST_P(AgentTest, NamesCodeThatIsGone) {
  const Profile profile = profile_of(R"(k = 0
while True:
    space = {}
    exec(compile(f"def made_{k}():\n    for i in range(2000): pass\n",
                 f"file_{k}.py", "exec"), space)
    space[f"made_{k}"]()
    space.clear()
    k += 1
)",
                                     400);
  if (!in_process(profile))
    GTEST_SKIP() << profile.notes.at("engine_why");
  std::size_t made = 0;
  std::size_t begun = 0;  // the others are at their first line
  for (const ProfileSample& sample : profile.samples)
    for (std::uint32_t at = sample.stack; at != 0;
         at = profile.stacks[at].parent) {
      const ProfileFrame& frame = profile.frames[profile.stacks[at].frame];
      const std::string name = profile.texts[frame.name];
      EXPECT_NE(name, "<code freed>");
      if (!name.starts_with("made_"))
        continue;
      ++made;
      EXPECT_EQ("file_" + name.substr(5) + ".py", profile.texts[frame.file]);
      EXPECT_TRUE(frame.line == 1 || frame.line == 2) << frame.line;
      begun += frame.line - 1;
    }
  EXPECT_GT(made, 40U);
  EXPECT_GT(begun * 10, made * 9);
}

// sorted() is C, and calls the key, which is Python again.
TEST_P(AgentTest, MergesNativeFrames) {
  const Profile profile = profile_of(R"(def spin(n):
    while True: pass
def outer():
    sorted([1, 2], key=spin)
outer()
)",
                                     300, true);
  if (!in_process(profile))
    GTEST_SKIP() << profile.notes.at("engine_why");
  // From 3.11 on, calls from Python to Python stay in one loop of the
  // interpreter.
  const std::string version = profile.notes.at("python");
  const bool old = version.starts_with("3.9") || version.starts_with("3.10");
  std::vector<std::string> expected = {"spin", "C", "outer", "<module>", "C"};
  if (old)
    expected.insert(expected.begin() + 3, "C");
  std::size_t merged = 0;
  for (const ProfileSample& sample : profile.samples) {
    std::vector<std::string> kinds;
    for (std::uint32_t stack = sample.stack; stack != 0;
         stack = profile.stacks[stack].parent) {
      const ProfileFrame& frame = profile.frames[profile.stacks[stack].frame];
      kinds.push_back(
          frame.kind == FrameKind::kPython ? profile.texts[frame.name] : "C");
    }
    const auto same = std::unique(kinds.begin(), kinds.end());
    kinds.erase(same, kinds.end());
    merged += std::search(kinds.begin(), kinds.end(), expected.begin(),
                          expected.end()) != kinds.end()
                  ? 1
                  : 0;
  }
  EXPECT_GT(merged, 100U);
}

// Seven parts of the work to three; the bound is eight standard deviations of a
// binomial distribution, as samples that are taken while others hold the
// processor are not independent.
TEST_P(AgentTest, FindsAKnownSplit) {
  const Profile profile = profile_of(R"(def work(n):
    x = 0
    for i in range(n): x += i
def heavy(): work(70000)
def light(): work(30000)
while True:
    heavy()
    light()
)",
                                     1500);
  double heavy = 0;
  double all = 0;
  for (const ProfileSample& sample : profile.samples) {
    const auto stack = names(profile, sample.stack);
    const bool is_heavy = std::ranges::find(stack, "heavy") != stack.end();
    const bool is_light = std::ranges::find(stack, "light") != stack.end();
    heavy += is_heavy ? 1 : 0;
    all += is_heavy || is_light ? 1 : 0;
  }
  ASSERT_GT(all, 500);
  if (in_process(profile)) {
    EXPECT_EQ(profile.counters.at("lost"), 0U);
  }
  EXPECT_NEAR(heavy / all, 0.7, 8 * std::sqrt(0.7 * 0.3 / all));
}

}  // namespace
}  // namespace postflight
