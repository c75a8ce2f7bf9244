#include "profile/engine/sampling_loop.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "profile/phase/helper.h"
#include "profile/python_child.h"

namespace postflight {
namespace {

using ::testing::ElementsAre;

// "name:line" of a stack's frames, the outermost first.
std::vector<std::string> shown(const Profile& profile, std::uint32_t stack) {
  std::vector<std::string> frames;
  for (; stack != 0; stack = profile.stacks[stack].parent) {
    const ProfileFrame& frame = profile.frames[profile.stacks[stack].frame];
    std::string text = profile.texts[frame.name];
    if (frame.line != 0)
      text += ":" + std::to_string(frame.line);
    frames.push_back(text);
  }
  std::ranges::reverse(frames);
  return frames;
}

class ExternalSampling : public ::testing::TestWithParam<std::string> {
 protected:
  // Samples until a thread of Python is seen, whose stack is returned.
  std::vector<std::string> stack_of(pid_t pid,
                                    const SamplingOptions& options = {
                                        .mode = ProfileMode::kWall}) {
    SampledProcess process(pid, false, options, {}, locator_, modules_,
                           processor_, builder_);
    samples_.clear();
    while (!process.python() || samples_.empty()) {
      samples_.clear();
      EXPECT_TRUE(process.sample(std::chrono::steady_clock::now(), samples_));
    }
    samples_.clear();
    process.sample(std::chrono::steady_clock::now() + std::chrono::seconds(1),
                   samples_);
    return shown(builder_.profile(), samples_.at(0).stack);
  }

  PythonLocator locator_;
  NativeModules modules_;
  SharedProcessor processor_;
  ProfileBuilder builder_;
  std::vector<ProfileSample> samples_;
};

INSTANTIATE_TEST_SUITE_P(Pythons, ExternalSampling,
                         ::testing::ValuesIn(test_pythons()), python_test_name);

TEST_P(ExternalSampling, NamesFramesAndLines) {
  PythonChild child(GetParam(), R"(import sys

def inner():
    # On one line, so that it makes no difference where it is seen.
    print("ready") or sys.stdin.readline()

class Outer:
    def method(self):
        for _ in range(1):
            inner()

Outer().method()
)");
  EXPECT_EQ(child.line(), "ready");
  const bool qualified = GetParam().find("3.9.") == std::string::npos &&
                         GetParam().find("3.10.") == std::string::npos;
  EXPECT_THAT(
      stack_of(child.pid()),
      ElementsAre("<module>:12", qualified ? "Outer.method:10" : "method:10",
                  "inner:5"));
}

TEST_P(ExternalSampling, FollowsGeneratorsAndNamesInAnyAlphabet) {
  PythonChild child(GetParam(), R"(import sys

def größe():
    yield print("ready") or sys.stdin.readline()

def 名前():
    yield from größe()

def 𝒻():
    return [x for x in 名前()]

𝒻()
)");
  EXPECT_EQ(child.line(), "ready");
  std::vector<std::string> stack = stack_of(child.pid());
  // 3.12 runs comprehensions in the function that has them.
  std::erase_if(stack, [](const std::string& frame) {
    return frame.find("<listcomp>") != std::string::npos;
  });
  // Python keeps names in their normal form, in which that f is a plain one.
  EXPECT_THAT(stack, ElementsAre("<module>:12", "f:10", "名前:7", "größe:4"));
}

TEST_P(ExternalSampling, ReadsStacksOfAnyDepth) {
  for (const std::size_t depth : {20U, 60U, 200U, 500U, 900U}) {
    PythonChild child(GetParam(), R"(import sys
def down(n):
    if n > 1:
        return down(n - 1)
    print("ready") or sys.stdin.readline()
down(int(sys.stdin.readline()))
)");
    child.tell(std::to_string(depth) + "\n");
    EXPECT_EQ(child.line(), "ready");
    const std::vector<std::string> stack = stack_of(
        child.pid(), {.mode = ProfileMode::kWall, .most_frames = 4096});
    ASSERT_EQ(stack.size(), depth + 1);
    EXPECT_EQ(stack.front(), "<module>:6");
    EXPECT_EQ(stack.back(), "down:5");
    EXPECT_EQ(std::ranges::count(stack, "down:4"),
              static_cast<std::ptrdiff_t>(depth) - 1);
    EXPECT_FALSE(samples_.at(0).flags.cut);
  }
}

TEST_P(ExternalSampling, MarksWhatWasCut) {
  PythonChild child(GetParam(), R"(import sys
def down(n):
    if n > 1:
        return down(n - 1)
    print("ready") or sys.stdin.readline()
down(100)
)");
  EXPECT_EQ(child.line(), "ready");
  const std::vector<std::string> stack =
      stack_of(child.pid(), {.mode = ProfileMode::kWall, .most_frames = 10});
  ASSERT_EQ(stack.size(), 11U);
  EXPECT_EQ(stack[0], "<truncated>");
  EXPECT_EQ(stack[1], "down:4");
  EXPECT_TRUE(samples_.at(0).flags.cut);
}

TEST_P(ExternalSampling, SeesEveryThread) {
  for (const std::size_t count : {1U, 32U, 160U}) {
    PythonChild child(GetParam(), R"(import sys, threading
gate = threading.Event()
here = threading.Semaphore(0)
def wait_here():
    here.release()
    gate.wait()
count = int(sys.stdin.readline())
for _ in range(count):
    threading.Thread(target=wait_here, daemon=True).start()
for _ in range(count):
    here.acquire()
print("ready") or sys.stdin.readline()
)");
    child.tell(std::to_string(count) + "\n");
    EXPECT_EQ(child.line(), "ready");
    stack_of(child.pid());
    EXPECT_EQ(samples_.size(), count + 1);
    const auto waiting =
        std::ranges::count_if(samples_, [this](const ProfileSample& sample) {
          const auto stack = shown(builder_.profile(), sample.stack);
          return std::ranges::any_of(stack, [](const std::string& frame) {
            return frame.starts_with("wait_here:");
          });
        });
    EXPECT_EQ(waiting, static_cast<std::ptrdiff_t>(count));
  }
}

TEST_P(ExternalSampling, TakesOnlyRunningThreadsForCpuTime) {
  PythonChild child(GetParam(), R"(import sys, threading
def spin():
    print("ready")
    while True:
        pass
threading.Thread(target=spin, daemon=True).start()
sys.stdin.readline()
)");
  EXPECT_EQ(child.line(), "ready");
  SampledProcess process(child.pid(), false, {.mode = ProfileMode::kCpu}, {},
                         locator_, modules_, processor_, builder_);
  std::size_t spinning = 0;
  std::size_t main_running = 0;
  // As often as the kernel counts what the thread has run.
  for (int round = 0; spinning <= 20 && round < 100'000; ++round) {
    samples_.clear();
    ASSERT_TRUE(process.sample(std::chrono::steady_clock::now(), samples_));
    for (const ProfileSample& sample : samples_) {
      const auto stack = shown(builder_.profile(), sample.stack);
      EXPECT_GT(sample.weight_ns, 0U);
      const bool spins = stack.back().starts_with("spin:");
      spinning += spins ? 1 : 0;
      main_running += stack.back() == "<module>:7" ? 1 : 0;
      EXPECT_FALSE(sample.flags.waiting);
    }
  }
  // It may still be on its way to its readline() at first.
  EXPECT_GT(spinning, 20U);
  EXPECT_LE(main_running * 20, spinning);
}

TEST_P(ExternalSampling, NotesWhenCodeDiesAndItsPlaceIsTaken) {
  PythonChild child(GetParam(), R"py(import sys
while True:
    name = sys.stdin.readline().strip()
    space = {"sys": sys}
    exec("def %s():\n print('ready') or sys.stdin.readline()" % name, space)
    space[name]()
)py");
  SampledProcess process(child.pid(), false, {.mode = ProfileMode::kWall}, {},
                         locator_, modules_, processor_, builder_);
  for (const std::string name : {"one", "two", "six"}) {
    child.tell(name + "\n");
    EXPECT_EQ(child.line(), "ready");
    do {
      samples_.clear();
      ASSERT_TRUE(process.sample(std::chrono::steady_clock::now(), samples_));
    } while (!process.python() || samples_.empty());
    EXPECT_EQ(shown(builder_.profile(), samples_.at(0).stack).back(),
              name + ":2");
    child.tell("go\n");
  }
}

TEST_P(ExternalSampling, EndsWithTheProcess) {
  PythonChild child(GetParam(),
                    "import sys\nprint('ready')\n"
                    "sys.stdin.readline()\n");
  EXPECT_EQ(child.line(), "ready");
  SampledProcess process(child.pid(), false, {}, {}, locator_, modules_,
                         processor_, builder_);
  EXPECT_TRUE(process.sample(std::chrono::steady_clock::now(), samples_));
  child.wait();
  EXPECT_FALSE(process.sample(
      std::chrono::steady_clock::now() + std::chrono::seconds(1), samples_));
}

Profile read_log(const std::filesystem::path& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  ProfileBuilder builder;
  EXPECT_TRUE(file);
  EXPECT_TRUE(read_profile_log(file->bytes(), "log", {}, builder));
  return std::move(builder.profile());
}

// Programs that call and return as fast as they can while they are read.
class FastPrograms : public ::testing::TestWithParam<std::string> {
 protected:
  // Some hundred samples of it, one a millisecond.
  static Profile profile_of(const std::string& script) {
    PythonChild child(GetParam(), script);
    EXPECT_EQ(child.line(), "ready");
    const Result<TemporaryFolder> folder = TemporaryFolder::create();
    const std::filesystem::path path = folder->path() / "log";
    Result<ProfileLogWriter> log = ProfileLogWriter::create(path, true);
    EXPECT_TRUE(log);
    SamplingLoop loop(
        {.interval = std::chrono::milliseconds(1), .most_frames = 1000}, {},
        *log);
    loop.add(child.pid());
    EXPECT_TRUE(loop.run([&loop] { return loop.samples() < 700; }));
    return read_log(path);
  }
};

INSTANTIATE_TEST_SUITE_P(Pythons, FastPrograms,
                         ::testing::ValuesIn(test_pythons()), python_test_name);

// Two chains of calls take turns: no leaf may appear below the other's parent.
constexpr std::string_view kTurns = R"(def leaf_a(): pass
def leaf_b(): pass
def parent_a():
    leaf_a(); leaf_a(); leaf_a()
def parent_b():
    leaf_b(); leaf_b(); leaf_b()
def down(n):
    if n > 1:
        return down(n - 1)
    print("ready")
    while True:
        parent_a()
        parent_b()
)";

TEST_P(FastPrograms, AreNotMixedFromTwoMoments) {
  if (!std::filesystem::exists("/proc/self/schedstat"))
    GTEST_SKIP() << "this kernel does not count turns";
  const Profile profile = profile_of(std::string(kTurns) + "down(1)\n");
  std::size_t leaves = 0;
  std::size_t impossible = 0;
  for (const ProfileSample& sample : profile.samples) {
    const auto stack = shown(profile, sample.stack);
    if (stack.size() < 2 || !stack.back().starts_with("leaf_"))
      continue;
    ++leaves;
    const std::string& parent = stack[stack.size() - 2];
    if (!parent.starts_with("parent_") || parent[7] != stack.back()[5])
      ++impossible;
  }
  EXPECT_GT(leaves, 50U);
  EXPECT_LE(impossible * 1000, leaves);
  EXPECT_LE(profile.counters.at("unproven"), 70U);
}

TEST_P(FastPrograms, AreReadToAnyDepth) {
  if (!std::filesystem::exists("/proc/self/schedstat"))
    GTEST_SKIP() << "this kernel does not count turns";
  const Profile profile = profile_of(std::string(kTurns) + "down(500)\n");
  const auto good = std::ranges::count_if(
      profile.samples, [&profile](const ProfileSample& sample) {
        const auto stack = shown(profile, sample.stack);
        return !sample.flags.torn && stack.size() > 500 &&
               stack[0].starts_with("<module>:") &&
               std::all_of(stack.begin() + 1, stack.begin() + 501,
                           [](const std::string& frame) {
                             return frame.starts_with("down:");
                           });
      });
  EXPECT_GE(static_cast<std::size_t>(good) * 100, profile.samples.size() * 95);
}

TEST(SamplingLoop, FollowsChildren) {
  PythonChild child("/usr/bin/python3", R"(import os, subprocess, sys
def in_child():
    print("ready") or sys.stdin.readline()
    os._exit(0)
if os.fork() == 0:
    in_child()
def in_parent():
    os.wait()
in_parent()
)");
  EXPECT_EQ(child.line(), "ready");
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  const std::filesystem::path path = folder->path() / "log";
  Result<ProfileLogWriter> log = ProfileLogWriter::create(path, true);
  ASSERT_TRUE(log);
  SamplingLoop loop(
      {.interval = std::chrono::milliseconds(1), .mode = ProfileMode::kWall},
      {}, *log);
  loop.add(child.pid());
  ASSERT_TRUE(loop.run([&loop] { return loop.samples() < 200; }));
  const Profile profile = read_log(path);
  EXPECT_THAT(profile.threads, ::testing::SizeIs(2));
  std::vector<std::string> innermost;
  for (const ProfileSample& sample : profile.samples)
    innermost.push_back(shown(profile, sample.stack).back());
  EXPECT_THAT(innermost, ::testing::Contains("in_child:3"));
  EXPECT_THAT(innermost, ::testing::Contains("in_parent:8"));
  EXPECT_EQ(profile.counters.at("samples"), profile.samples.size());
}

// What a program sees of torch's hook: enough to be called.
constexpr std::string_view kFakeTorch = R"(class StrobelightCompileTimeProfiler:
    enabled = False
    @classmethod
    def get_frame(cls):
        return "0/0"
    @classmethod
    def profile_compile_time(cls, work, phase, *arguments):
        raise AssertionError("has torch's guard")
)";

class PhasesOfPrograms : public ::testing::TestWithParam<std::string> {
 protected:
  // Runs a program with the module for phases until `enough` says so of the
  // names "phase: innermost frame" seen.
  template <class Enough>
  std::set<std::string> phases_seen(std::string_view script, Enough enough) {
    const Result<TemporaryFolder> folder = TemporaryFolder::create();
    const std::filesystem::path torch = folder->path() / "torch/_strobelight";
    std::filesystem::create_directories(torch);
    std::ofstream(folder->path() / "torch/__init__.py") << "";
    std::ofstream(torch / "__init__.py") << "";
    std::ofstream(torch / "compile_time_profiler.py") << kFakeTorch;
    const auto environment = install_phase_helper(
        folder->path(),
        [](const char*) -> std::optional<std::string> { return std::nullopt; });
    EXPECT_TRUE(environment);
    for (const std::string& variable : *environment) {
      const std::size_t end = variable.find('=');
      ::setenv(variable.substr(0, end).c_str(),
               variable.substr(end + 1).c_str(), 1);
    }
    PythonChild child(GetParam(), script);
    ::unsetenv("PYTHONPATH");
    ::unsetenv("POSTFLIGHT_PHASES");
    const std::filesystem::path path = folder->path() / "log";
    Result<ProfileLogWriter> log = ProfileLogWriter::create(path, true);
    EXPECT_TRUE(log);
    std::set<std::string> seen;
    const SamplingOptions options = {.interval = std::chrono::milliseconds(1),
                                     .mode = ProfileMode::kWall,
                                     .folder = folder->path()};
    SamplingLoop loop(options, {}, *log);
    loop.add(child.pid());
    EXPECT_TRUE(loop.run([&] {
      static_cast<void>(log->flush());
      const Profile profile = read_log(path);
      for (const ProfileSample& sample : profile.samples) {
        const auto stack = shown(profile, sample.stack);
        const ProfilePhase& phase = profile.phases[sample.phase];
        seen.insert(profile.phase_name(sample.phase) + " " +
                    profile.texts[phase.frame_id] + ": " +
                    (stack.empty() ? "" : stack.back()));
      }
      return !enough(seen);
    }));
    return seen;
  }
};

INSTANTIATE_TEST_SUITE_P(Pythons, PhasesOfPrograms,
                         ::testing::ValuesIn(test_pythons()), python_test_name);

TEST_P(PhasesOfPrograms, LabelSamples) {
  const auto seen = phases_seen(
      R"(import os, sys, threading
from postflight_phase import phase
def wait_forever():
    threading.Event().wait()
def other():
    with phase("other"):
        here.set()
        in_other()
def in_other():
    wait_forever()
here = threading.Event()
threading.Thread(target=other, daemon=True).start()
here.wait()
with phase("done"):
    pass
with phase("outer", "1/0"):
    with phase("inner"):
        if os.fork() == 0:
            sys.stdin.read()  # until the test ends
            os._exit(0)
        wait_forever()
)",
      [](const std::set<std::string>& names) {
        return names.size() > 1 &&
               std::ranges::any_of(names,
                                   [](const std::string& name) {
                                     return name.starts_with("outer/inner :");
                                   }) &&
               std::ranges::any_of(names, [](const std::string& name) {
                 return name.starts_with("other :");
               });
      });
  for (const std::string& name : seen)
    EXPECT_EQ(name.starts_with("done"), false) << name;
}

// torch's class has one guard for the process: phases inside of others and
// those of other threads had no names, and after an exception none had.
TEST_P(PhasesOfPrograms, IncludeThoseOfTorch) {
  const auto seen = phases_seen(
      R"(import threading
from torch._strobelight.compile_time_profiler import (
    StrobelightCompileTimeProfiler as hook)
assert hook.enabled
def broken():
    raise ValueError
try:
    hook.profile_compile_time(broken, "compile_inner")
except ValueError:
    pass
def forward():
    pass
def compile_it(code=None):
    hook.profile_compile_time(threading.Event().wait, "inside")
def elsewhere():
    threading.Event().wait()
threading.Thread(target=hook.profile_compile_time, daemon=True,
                 args=(elsewhere, "other")).start()
assert hook.profile_compile_time(lambda: 5, "compile_inner") == 5
hook.profile_compile_time(compile_it, "backward", forward.__code__)
)",
      [](const std::set<std::string>& names) {
        const auto has = [&names](std::string_view start) {
          return std::ranges::any_of(names, [start](const std::string& name) {
            return name.starts_with(start);
          });
        };
        return has("backward/forward (") && has("other") &&
               std::ranges::any_of(names, [](const std::string& name) {
                 return name.find(")/inside :") != std::string::npos;
               });
      });
  for (const std::string& name : seen)
    EXPECT_EQ(name.starts_with("compile_inner/"), false) << name;
}

TEST_P(PhasesOfPrograms, OfTorchAreFilteredByItsVariable) {
  phases_seen(
      R"(import os, threading
os.environ["COMPILE_STROBELIGHT_FRAME_FILTER"] = "1/"
from torch._strobelight.compile_time_profiler import (
    StrobelightCompileTimeProfiler as hook)
frame = "1/0"
hook.get_frame = lambda: frame
def wait():
    global frame
    frame = "0/0"
    hook.profile_compile_time(threading.Event().wait, "left_out")
hook.profile_compile_time(wait, "taken")
)",
      [](const std::set<std::string>& names) {
        return std::ranges::any_of(names, [](const std::string& name) {
          return name.starts_with("taken 1/0:");
        });
      });
}

TEST_P(PhasesOfPrograms, OfTorchSurviveAFilterThatIsNotValid) {
  phases_seen(
      R"(import logging, os, threading
os.environ["COMPILE_STROBELIGHT_FRAME_FILTER"] = "("
told = []
class Keep(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())
logging.getLogger("strobelight_compile_time_profiler").addHandler(Keep())
from torch._strobelight.compile_time_profiler import (
    StrobelightCompileTimeProfiler as hook)
assert len(told) == 1 and "is not a valid regular expression" in told[0], told
hook.profile_compile_time(threading.Event().wait, "backward")
)",
      [](const std::set<std::string>& names) {
        return std::ranges::any_of(names, [](const std::string& name) {
          return name.starts_with("backward 0/0:");
        });
      });
}

// Defect 15 of torch's class: only hardware cycles of one process were seen, so
// nothing of the processes that do the compiling, nor that one waits for them.
TEST_P(PhasesOfPrograms, CoverWorkersAndWaiting) {
  phases_seen(
      R"py(import subprocess, sys
from postflight_phase import phase
def wait_for_worker():
    worker.wait()
with phase("compile", "3/0"):
    worker = subprocess.Popen([sys.executable, "-c",
        "import sys\ndef compile_it(): sys.stdin.read()\ncompile_it()"])
    wait_for_worker()
)py",
      [](const std::set<std::string>& names) {
        return names.contains("compile 3/0: compile_it:2") &&
               std::ranges::any_of(names, [](const std::string& name) {
                 return name.starts_with("compile 3/0: Popen.") ||
                        name.starts_with("compile 3/0: _try_wait");
               });
      });
}

TEST(SamplingLoop, SaysWhyAProcessMayNotBeRead) {
  const Result<> nobody = check_permission(INT32_MAX);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().message(), "there is no process 2147483647");
  EXPECT_TRUE(check_permission(::getpid()));
}

}  // namespace
}  // namespace postflight
