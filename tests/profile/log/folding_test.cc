#include "profile/log/folding.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

class FoldingTest : public ::testing::Test {
 protected:
  // A stack of "name@file", the outermost first.
  std::uint32_t stack(const std::vector<std::string>& frames) {
    std::uint32_t at = 0;
    for (const std::string& frame : frames) {
      const std::size_t middle = frame.find('@');
      at = builder_.stack(
          at, builder_.frame({FrameKind::kPython,
                              builder_.text(frame.substr(0, middle)),
                              builder_.text(frame.substr(middle + 1)), 1}));
    }
    return at;
  }
  std::string shown(const Profile& profile, std::uint32_t at) {
    std::string text;
    for (; at != 0; at = profile.stacks[at].parent)
      text = profile.texts[profile.frames[profile.stacks[at].frame].name] +
             (text.empty() ? "" : " ") + text;
    return text;
  }

  ProfileBuilder builder_;
};

TEST_F(FoldingTest, GivesInternalsToTheirCallersAndImportsOneFrame) {
  builder_.thread({.pid = 1, .tid = 1});
  const std::string importlib = "_find_and_load@<frozen importlib._bootstrap>";
  const std::vector<std::vector<std::string>> stacks = {
      {"f@a.py", "dumps@/usr/lib/python3.11/json/__init__.py"},
      {"f@a.py", "sort@/usr/lib/python3.11/heapq.py", "key@a.py"},
      {"f@a.py", "call@/x/site-packages/torch/nn/module.py", "g@b.py"},
      {"f@a.py", "h@/x/site-packages/numpy/core.py"},
      {"run@/usr/lib/python3.11/threading.py", "f@a.py"},
      {"main@a.py", importlib, "<module>@/x/site-packages/torch/__init__.py",
       importlib, "<module>@/usr/lib/python3.11/json/__init__.py"},
      {"main@a.py", importlib}};
  for (const auto& frames : stacks)
    builder_.profile().samples.push_back(
        {.weight_ns = 5, .stack = stack(frames)});
  const FoldedProfile folded = fold(builder_.profile());
  std::vector<std::string> seen;
  for (const ProfileSample& sample : folded.profile.samples)
    seen.push_back(shown(folded.profile, sample.stack));
  EXPECT_EQ(seen, (std::vector<std::string>{"f", "f key", "f g", "f h", "run f",
                                            "main import", "main import"}));
  ASSERT_EQ(folded.imports.size(), 1U);
  EXPECT_EQ(folded.imports[0].module, "torch");
  EXPECT_EQ(folded.imports[0].ns, 5U);
}

TEST_F(FoldingTest, GivesEachCompilationOneFrame) {
  const auto text = [this](std::string_view name) {
    return builder_.text(name);
  };
  builder_.thread({.pid = 1, .tid = 1, .process = text("python train.py")});
  builder_.thread({.pid = 2, .tid = 2, .process = text("/usr/bin/g++-12 -O2")});
  builder_.thread({.pid = 3, .tid = 3, .process = text("cc1plus -quiet")});
  builder_.thread({.pid = 4, .tid = 4, .process = text("gzip")});
  const auto compiled = [&](std::string_view id, std::string_view function) {
    const std::uint32_t phase =
        builder_.phase({.name = text("compile_inner"), .frame_id = text(id)});
    return builder_.phase({.parent = phase, .name = text(function)});
  };
  const std::uint32_t first = compiled("0/0", "f (model.py:40)");
  const std::uint32_t again = compiled("0/2", "f (model.py:40)");
  const std::uint32_t other = compiled("1/0", "g (model.py:60)");
  const std::string torch = "/x/site-packages/torch/";
  const std::string dynamo = "compile@" + torch + "_dynamo/convert_frame.py";
  const std::string timed = "timed@" + torch + "_dynamo/utils.py";
  const std::string aot = "aot@" + torch + "_functorch/aot_autograd.py";
  const std::string inductor = "lower@" + torch + "_inductor/graph.py";
  const auto add = [&](std::uint32_t thread, std::uint32_t phase,
                       std::uint64_t ns,
                       const std::vector<std::string>& frames) {
    builder_.profile().samples.push_back({.weight_ns = ns,
                                          .thread = thread,
                                          .stack = stack(frames),
                                          .phase = phase});
  };
  add(0, first, 1, {"main@train.py", dynamo, "f@/x/sympy/core.py"});
  add(0, again, 2, {"main@train.py", dynamo, aot, timed});
  add(0, other, 4, {"main@train.py", dynamo, aot, inductor, timed});
  add(1, first, 8, {"[g++]@"});
  add(2, first, 16, {"[cc1plus]@"});
  // Runs beside a compilation, and no part of it.
  add(3, first, 32, {"[gzip]@"});
  add(1, 0, 64, {"[g++]@"});
  // What was compiled runs.
  add(0, 0, 128, {"main@train.py", aot, inductor});
  // Attached: no phases.
  add(0, 0, 256, {"main@train.py", dynamo});
  const FoldedProfile folded = fold(builder_.profile());
  std::vector<std::string> seen;
  for (const ProfileSample& sample : folded.profile.samples)
    seen.push_back(shown(folded.profile, sample.stack));
  EXPECT_EQ(seen,
            (std::vector<std::string>{"main torch.compile f (model.py:40)",
                                      "main torch.compile f (model.py:40)",
                                      "main torch.compile g (model.py:60)",
                                      "torch.compile f (model.py:40)",
                                      "torch.compile f (model.py:40)", "[gzip]",
                                      "[g++]", "main", "main torch.compile"}));
  ASSERT_EQ(folded.compilations.size(), 3U);
  EXPECT_EQ(folded.compilations[0].function, "");
  EXPECT_EQ(folded.compilations[0].ns, 256U);
  const CompileTime& f = folded.compilations[1];
  EXPECT_EQ(f.function, "f (model.py:40)");
  EXPECT_EQ(f.ns, 27U);
  EXPECT_EQ(f.dynamo_ns, 1U);
  EXPECT_EQ(f.aot_ns, 2U);
  EXPECT_EQ(f.inductor_ns, 0U);
  EXPECT_EQ(f.compilers_ns, 24U);
  EXPECT_EQ(f.compilers, 1U);
  EXPECT_EQ(f.recompiles, 2U);
  EXPECT_EQ(folded.compilations[2].inductor_ns, 4U);
}

TEST_F(FoldingTest, GivesThePlumbingOfCallsToTheirCallers) {
  builder_.thread({.pid = 1, .tid = 1});
  std::uint32_t at = stack({"f@a.py"});
  for (const char* const name :
       {"PyObject_Vectorcall", "list_sort", "_PyObject_VectorcallTstate"})
    at = builder_.stack(at,
                        builder_.frame({FrameKind::kNative, builder_.text(name),
                                        builder_.text("call.c"), 1}));
  builder_.profile().samples = {{.weight_ns = 5, .stack = at}};
  const FoldedProfile folded = fold(builder_.profile());
  EXPECT_EQ(shown(folded.profile, folded.profile.samples[0].stack),
            "f list_sort");
}

TEST_F(FoldingTest, LeavesProcessesOutThatOnlyWait) {
  const std::uint32_t program = builder_.thread({.pid = 1, .tid = 1});
  const std::uint32_t worker = builder_.thread({.pid = 2, .tid = 2});
  for (const std::uint32_t thread : {program, worker})
    builder_.profile().samples.push_back(
        {.weight_ns = 1'000, .thread = thread, .flags = {.waiting = true}});
  EXPECT_EQ(main_threads(builder_.profile()), (std::vector<bool>{true, false}));
  const FoldedProfile folded = fold(builder_.profile());
  ASSERT_EQ(folded.profile.samples.size(), 1U);
  EXPECT_EQ(folded.profile.samples[0].thread, program);
}

TEST_F(FoldingTest, LeavesThreadsOutThatOnlyWait) {
  const std::uint32_t main = builder_.thread({.pid = 1, .tid = 1});
  const std::uint32_t worker = builder_.thread({.pid = 1, .tid = 2});
  const std::uint32_t busy = builder_.thread({.pid = 1, .tid = 3});
  for (int i = 0; i < 100; ++i)
    for (const std::uint32_t thread : {main, worker, busy})
      builder_.profile().samples.push_back(
          {.weight_ns = 1'000,
           .thread = thread,
           .flags = {.waiting = thread != busy || i < 50}});
  const FoldedProfile folded = fold(builder_.profile());
  EXPECT_EQ(folded.idle_threads, 1U);
  EXPECT_EQ(folded.profile.samples.size(), 200U);
  for (const ProfileSample& sample : folded.profile.samples)
    EXPECT_NE(sample.thread, worker);
}

}  // namespace
}  // namespace postflight
