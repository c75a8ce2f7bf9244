#include "profile/compile/compile_time_profiler.h"

#include <map>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include "base/temporary_folder.h"
#include "profile/compile/run_identity.h"

namespace postflight {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A profiler that does as it is told.
struct Script {
  bool start_fails = false;
  bool start_throws = false;
  bool stop_fails = false;
  bool concurrent = true;
  PhaseProfile profile = {.samples = 1};
  std::vector<std::string> calls = {};
  PhaseProfilerOptions made_with = {};
};

class ScriptedProfiler final : public PhaseProfiler {
 public:
  explicit ScriptedProfiler(Script& script) : script_(script) {}

  bool concurrent() const override { return script_.concurrent; }
  Result<> start(const PhaseRun& run) override {
    script_.calls.push_back("start " + run.phase + " " + run.frame_id);
    if (script_.start_throws)
      throw std::runtime_error("no start");
    if (script_.start_fails)
      return fail(ErrorKind::kIo, "cannot start");
    return {};
  }
  Result<PhaseProfile> stop(const PhaseRun& run) override {
    script_.calls.push_back("stop " + run.phase + " " + run.frame_id);
    if (script_.stop_fails)
      return fail(ErrorKind::kIo, "cannot stop");
    return script_.profile;
  }

 private:
  Script& script_;
};

class CompileTimeProfilerTest : public ::testing::Test {
 protected:
  void make(CompileProfileOptions options = {}) {
    profiler_ = std::make_unique<CompileTimeProfiler>(std::move(options), log_,
                                                      nullptr);
  }
  void enable() {
    profiler_->enable(
        [this](const PhaseProfilerOptions& options)
            -> Result<std::unique_ptr<PhaseProfiler>> {
          script_.made_with = options;
          return std::make_unique<ScriptedProfiler>(script_);
        },
        "/tmp/a b.pflog");
  }
  int run(std::string_view frame_id, int value = 5) {
    return profiler_->profile_compile_time("compile_inner", frame_id,
                                           [&] { return value; });
  }

  Script script_;
  std::vector<std::string> lines_;
  Log log_{[this](LogLevel, std::string_view, std::string_view message) {
    lines_.emplace_back(message);
  }};
  std::unique_ptr<CompileTimeProfiler> profiler_;
};

TEST_F(CompileTimeProfilerTest, RunsTheWorkAndSaysSo) {
  make({.tags = {"nightly"}, .user = "ada", .rank = 3});
  EXPECT_EQ(run("0/0"), 5);  // off: nothing is counted
  enable();
  EXPECT_EQ(run("0/0", 7), 7);
  EXPECT_EQ(profiler_->counters(), (CompileProfileCounters{.success = 1}));
  EXPECT_THAT(
      lines_,
      ElementsAre(
          "compile time strobelight profiling enabled",
          "Unique sample tag for this run is: " + profiler_->identifier(),
          "Further tags: nightly",
          "URL to access the strobelight profile at the end of the run: "
          "file:///tmp/a%20b.pflog",
          "profiling frame 0/0",
          "1 strobelight success runs out of 1 non-recursive compilation "
          "events.",
          "0 recursive and 0 concurrent ones ignored, 0 filtered, 0 without "
          "samples, 0 longer than allowed."));
  EXPECT_EQ(script_.made_with.run_user_name, "pt2-profiler/ada");
  EXPECT_THAT(script_.made_with.sample_tags, Contains("nightly"));
  EXPECT_THAT(script_.made_with.sample_tags, Contains(profiler_->identifier()));
}

TEST_F(CompileTimeProfilerTest, IsEnabledOnce) {
  make();
  enable();
  const std::string identifier = profiler_->identifier();
  lines_.clear();
  profiler_->enable(nullptr, "");
  EXPECT_THAT(lines_, ElementsAre("compile time strobelight profiling already "
                                  "enabled"));
  EXPECT_EQ(profiler_->identifier(), identifier);
  EXPECT_EQ(run("0/0"), 5);
}

// Defect 1 of torch's class: after an exception, every phase was "recursive".
TEST_F(CompileTimeProfilerTest, GoesOnAfterAnException) {
  make();
  enable();
  EXPECT_THROW(profiler_->profile_compile_time(
                   "compile_inner", "0/0",
                   []() -> int { throw std::runtime_error("graph break"); }),
               std::runtime_error);
  EXPECT_EQ(run("1/0"), 5);
  EXPECT_EQ(profiler_->counters(),
            (CompileProfileCounters{.success = 1, .failed = 1}));
  EXPECT_THAT(script_.calls,
              ElementsAre("start compile_inner 0/0", "stop compile_inner 0/0",
                          "start compile_inner 1/0", "stop compile_inner 1/0"));
}

// Defect 2: a busy profiler meant that the work was not run.
TEST_F(CompileTimeProfilerTest, RunsTheWorkOfAThreadThatIsNotProfiled) {
  script_.concurrent = false;
  make();
  enable();
  int inner = 0;
  profiler_->profile_compile_time("compile_inner", "0/0", [&] {
    std::thread([&] {
      inner =
          profiler_->profile_compile_time("backward", "1/0", [] { return 9; });
    }).join();
  });
  EXPECT_EQ(inner, 9);
  EXPECT_EQ(profiler_->counters(),
            (CompileProfileCounters{.success = 1, .ignored_concurrent = 1}));
}

// Defects 3 and 4: a lock was kept when the start failed and the work threw,
// or when something else than an Exception came through.
TEST_F(CompileTimeProfilerTest, KeepsNothingWhenStartAndWorkFail) {
  script_.concurrent = false;
  script_.start_fails = true;
  make();
  enable();
  struct Interrupt {};
  EXPECT_THROW(profiler_->profile_compile_time("compile_inner", "0/0",
                                               [] { throw Interrupt(); }),
               Interrupt);
  EXPECT_THAT(lines_, Contains("cannot profile phase compile_inner: cannot "
                               "start"));
  script_.start_fails = false;
  EXPECT_EQ(run("0/0"), 5);
  EXPECT_EQ(profiler_->counters(),
            (CompileProfileCounters{.success = 1, .failed = 1}));
}

// Defect 5: a constructor that threw left it enabled, and no work was run.
TEST_F(CompileTimeProfilerTest, StaysOffWithoutAProfiler) {
  make();
  profiler_->enable(
      [](const PhaseProfilerOptions&)
          -> Result<std::unique_ptr<PhaseProfiler>> {
        throw std::runtime_error("no sampler here");
      },
      "/tmp/x");
  EXPECT_FALSE(profiler_->enabled());
  EXPECT_THAT(lines_, ElementsAre("compile time strobelight profiling not "
                                  "enabled: no sampler here"));
  EXPECT_EQ(run("0/0"), 5);
  enable();
  EXPECT_TRUE(profiler_->enabled());
}

// Defect 6: an answer that could not be read counted as success. Defect 7,
// results stored letter by letter: PhasesOfPrograms.IncludeThoseOfTorch.
TEST_F(CompileTimeProfilerTest, TellsSuccessFromNothing) {
  make();
  enable();
  script_.profile = {.samples = 0};
  run("0/0");
  script_.stop_fails = true;
  run("1/0");
  script_.stop_fails = false;
  script_.profile = {.samples = 12, .truncated = true};
  run("2/0");
  EXPECT_EQ(profiler_->counters(),
            (CompileProfileCounters{
                .success = 1, .failed = 1, .empty = 1, .truncated = 1}));
}

TEST_F(CompileTimeProfilerTest, SurvivesAProfilerThatThrows) {
  script_.start_throws = true;
  make();
  enable();
  EXPECT_EQ(run("0/0"), 5);
  EXPECT_EQ(profiler_->counters(), (CompileProfileCounters{.failed = 1}));
}

// Defect 8: another thread was taken for recursion, and the log named the new
// frame twice.
TEST_F(CompileTimeProfilerTest, TellsThreadsFromRecursion) {
  make();
  enable();
  profiler_->profile_compile_time("compile_inner", "0/0", [&] {
    EXPECT_EQ(
        profiler_->profile_compile_time("backward", "0/1", [] { return 3; }),
        3);
    std::thread([&] { run("7/0"); }).join();
  });
  EXPECT_THAT(lines_,
              Contains("profile_compile_time is requested for phase: backward, "
                       "frame 0/1, while already in running phase: "
                       "compile_inner, frame 0/0, recursive call ignored"));
  EXPECT_EQ(profiler_->counters(),
            (CompileProfileCounters{.success = 2, .ignored_recursive = 1}));
}

// Defect 9: the filter matched prefixes only, and a bad one threw in the midst
// of compiling.
TEST_F(CompileTimeProfilerTest, FiltersByFrame) {
  make({.frame_filter = "1"});
  enable();
  for (const char* const frame : {"1/0", "10/0", "0/1"})
    run(frame);
  EXPECT_EQ(profiler_->counters(),
            (CompileProfileCounters{.success = 2, .filtered = 1}));
  EXPECT_THAT(lines_, Contains("profiling frame 0/1 is skipped due to "
                               "frame_id_filter 1"));
  make({.frame_filter = "1/.*",
        .frame_filter_full = true,
        .frame_exclude = "1/3"});
  enable();
  for (const char* const frame : {"1/0", "10/0", "1/3", "None"})
    run(frame);
  EXPECT_EQ(profiler_->counters(),
            (CompileProfileCounters{.success = 1, .filtered = 3}));
}

// Defects 9 and 10: bad or empty variables broke the import.
TEST_F(CompileTimeProfilerTest, WarnsOfBadVariables) {
  const std::map<std::string, std::string> set = {
      {"COMPILE_STROBELIGHT_FRAME_FILTER", "("},
      {"COMPILE_STROBELIGHT_MAX_STACK_LENGTH", "abc"},
      {"COMPILE_STROBELIGHT_MAX_PROFILE_TIME", "1.5"},
      {"COMPILE_STROBELIGHT_SAMPLE_RATE", ""},
      {"POSTFLIGHT_SAMPLE_RATE", "fast"},
      {"POSTFLIGHT_MAX_STACK_LENGTH", "5000"},
      {"RANK", "x"}};
  const CompileProfileOptions options = compile_profile_options(
      [&](const char* name) {
        const auto found = set.find(name);
        return found == set.end() ? std::nullopt : std::optional(found->second);
      },
      log_);
  EXPECT_EQ(options, CompileProfileOptions());
  EXPECT_THAT(
      lines_,
      ElementsAre(
          "COMPILE_STROBELIGHT_FRAME_FILTER='(' is not valid; using "
          "the default",
          "COMPILE_STROBELIGHT_MAX_STACK_LENGTH='abc' is not valid; using "
          "the default",
          "POSTFLIGHT_MAX_STACK_LENGTH='5000' is not valid; using "
          "the default",
          "COMPILE_STROBELIGHT_MAX_PROFILE_TIME='1.5' is not valid; using "
          "the default",
          "COMPILE_STROBELIGHT_SAMPLE_RATE='' is not valid; using "
          "the default",
          "POSTFLIGHT_SAMPLE_RATE='fast' is not valid; using the "
          "default"));
}

TEST_F(CompileTimeProfilerTest, TakesVariablesOfBothNames) {
  const std::map<std::string, std::string> set = {
      {"COMPILE_STROBELIGHT_FRAME_FILTER", "0/"},
      {"POSTFLIGHT_FRAME_FILTER", "1/"},
      {"POSTFLIGHT_FRAME_FILTER_FULL", "1"},
      {"POSTFLIGHT_FRAME_EXCLUDE", "1/2"},
      {"COMPILE_STROBELIGHT_MAX_STACK_LENGTH", "127"},
      {"COMPILE_STROBELIGHT_MAX_PROFILE_TIME", "60"},
      {"COMPILE_STROBELIGHT_SAMPLE_RATE", "1e8"},
      {"POSTFLIGHT_SAMPLE_RATE", "100"},
      {"POSTFLIGHT_TAGS", "a,,b"},
      {"POSTFLIGHT_URL_COMMAND", "shorten"},
      {"USERNAME", "grace"},
      {"SLURM_PROCID", "12"}};
  EXPECT_EQ(compile_profile_options(
                [&](const char* name) {
                  const auto found = set.find(name);
                  return found == set.end() ? std::nullopt
                                            : std::optional(found->second);
                },
                log_),
            (CompileProfileOptions{.frame_filter = "1/",
                                   .frame_filter_full = true,
                                   .frame_exclude = "1/2",
                                   .max_stack_length = 127,
                                   .max_profile_time = std::chrono::seconds(60),
                                   .sample_each = std::chrono::milliseconds(10),
                                   .tags = {"a", "b"},
                                   .url_command = "shorten",
                                   .user = "grace",
                                   .rank = 12}));
  EXPECT_THAT(lines_, IsEmpty());
}

// Defects 11 and 17: commands were waited for without end, and the address had
// a newline in it and was not escaped.
TEST_F(CompileTimeProfilerTest, AsksForTheAddress) {
  EXPECT_EQ(answered_url("echo short", "file:///x%20y", 10, log_),
            "short file:///x%20y");
  EXPECT_EQ(answered_url("", "file:///x", 10, log_), "file:///x");
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_EQ(answered_url("false", "file:///x", 10, log_), "file:///x");
  EXPECT_EQ(answered_url("true", "file:///x", 10, log_), "file:///x");
  EXPECT_EQ(answered_url("sleep 1000;", "file:///x", 0, log_), "file:///x");
  EXPECT_THAT(
      lines_,
      ElementsAre(
          "POSTFLIGHT_URL_COMMAND (false): it failed; the result is "
          "at file:///x",
          "POSTFLIGHT_URL_COMMAND (true): it printed nothing; the result "
          "is at file:///x",
          "POSTFLIGHT_URL_COMMAND (sleep 1000;): no answer within 0 s; "
          "the result is at file:///x"));
  EXPECT_EQ(file_url("/tmp/{\"a\"}\n"), "file:///tmp/%7B%22a%22%7D%0A");
}

// Defect 12: what it was made with never reached the sampler.
TEST_F(CompileTimeProfilerTest, HandsItsOptionsOn) {
  make({.max_stack_length = 77,
        .max_profile_time = std::chrono::seconds(5),
        .sample_each = std::chrono::milliseconds(2)});
  enable();
  EXPECT_EQ(script_.made_with.stack_max_len, 77U);
  EXPECT_EQ(script_.made_with.max_profile_duration, std::chrono::seconds(5));
  EXPECT_EQ(script_.made_with.sample_each, std::chrono::milliseconds(2));
}

// Defect 13: samples did not know their phase, and nested ones were lost.
TEST_F(CompileTimeProfilerTest, ShowsNestedPhasesToTheSampler) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  const std::filesystem::path path = phase_table_path(folder->path(), 1);
  Result<PhaseTable> table = PhaseTable::create(path);
  ASSERT_TRUE(table);
  const Result<PhaseTableReader> reader = PhaseTableReader::open(path);
  ASSERT_TRUE(reader);
  profiler_ = std::make_unique<CompileTimeProfiler>(CompileProfileOptions(),
                                                    log_, &*table);
  enable();
  profiler_->profile_compile_time("compile_inner", "0/0", [&] {
    profiler_->profile_compile_time("backward", "0/0", [&] {
      const auto inside = reader->phases(::gettid());
      ASSERT_EQ(inside.size(), 2U);
      EXPECT_EQ(reader->seen(inside[0]), (SeenPhase{"compile_inner", "0/0"}));
      EXPECT_EQ(reader->seen(inside[1]), (SeenPhase{"backward", "0/0"}));
    });
  });
  EXPECT_THAT(reader->phases(::gettid()), IsEmpty());
}

// Defect 14: ignored and filtered ones were counted but never told, and
// "enabled" was said before it failed. Defect 15, nothing but one process's
// hardware cycles: PhasesOfPrograms.CoverWorkersAndWaiting.
TEST_F(CompileTimeProfilerTest, TellsWhatItLeftOut) {
  make({.frame_filter = "0/"});
  enable();
  profiler_->profile_compile_time("a", "0/0", [&] { run("0/1"); });
  run("5/0");
  run("0/2");
  EXPECT_EQ(lines_.back(),
            "1 recursive and 0 concurrent ones ignored, 1 filtered, 0 without "
            "samples, 0 longer than allowed.");
}

// Defect 16: nothing stood between the parts of the identifier, the rank was
// not in it, and a forked child had its parent's.
TEST_F(CompileTimeProfilerTest, HasAnIdentifierOfItsOwn) {
  EXPECT_EQ(run_identifier(0, 12, "node3", 7),
            "1970-01-01-00:00:00_12_node3_rank7");
  EXPECT_EQ(run_identifier(0, 12, "node3", -1), "1970-01-01-00:00:00_12_node3");
  make();
  enable();
  const std::string parent = profiler_->identifier();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool well = profiler_->identifier() != parent && run("0/0") == 5;
    ::_exit(well ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace postflight
