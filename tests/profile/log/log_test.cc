#include "profile/log/log.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "base/test_files.h"

namespace postflight {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ProfileBuilder sample_profile() {
  ProfileBuilder builder;
  const std::uint32_t main = builder.frame(
      {FrameKind::kPython, builder.text("main"), builder.text("a.py"), 3});
  const std::uint32_t leaf = builder.frame(
      {FrameKind::kNative, builder.text("memcpy"), builder.text("libc"), 0});
  const std::uint32_t outer = builder.stack(0, main);
  const std::uint32_t inner = builder.stack(outer, leaf);
  const std::uint32_t compile =
      builder.phase({0, builder.text("compile"), builder.text("0/0")});
  builder.phase({compile, builder.text("lower"), 0});
  builder.thread({.rank = 3,
                  .pid = 10,
                  .tid = 11,
                  .process = builder.text("python a.py"),
                  .name = builder.text("main")});
  Profile& profile = builder.profile();
  profile.samples = {
      {.time_ns = 5, .weight_ns = 10, .thread = 0, .stack = inner, .phase = 2},
      {.time_ns = 15,
       .weight_ns = 10,
       .thread = 0,
       .stack = outer,
       .phase = 0,
       .flags = {
           .waiting = true, .torn = true, .cut = true, .unreadable = true}}};
  return builder;
}

std::string sample_log() {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  const std::filesystem::path path = folder->path() / "log";
  Result<ProfileLogWriter> log = ProfileLogWriter::create(path, true);
  EXPECT_TRUE(log);
  const ProfileBuilder builder = sample_profile();
  log->note("mode", "cpu");
  log->counter("lost", 1);
  log->tables(builder.profile());
  log->sample(builder.profile().samples[0]);
  EXPECT_TRUE(log->flush());
  log->counter("lost", 300);
  log->sample(builder.profile().samples[1]);
  EXPECT_TRUE(log->flush());
  return read_file(path);
}

TEST(ProfileLog, GivesBackWhatWasWritten) {
  ProfileBuilder read;
  ASSERT_TRUE(read_profile_log(as_bytes(sample_log()), "log", {}, read));
  const Profile& profile = read.profile();
  const ProfileBuilder expected = sample_profile();
  EXPECT_EQ(profile.texts, expected.profile().texts);
  EXPECT_EQ(profile.frames, expected.profile().frames);
  EXPECT_EQ(profile.stacks, expected.profile().stacks);
  EXPECT_EQ(profile.phases, expected.profile().phases);
  EXPECT_EQ(profile.threads, expected.profile().threads);
  EXPECT_EQ(profile.samples, expected.profile().samples);
  EXPECT_THAT(profile.notes, ElementsAre(Pair("mode", "cpu")));
  EXPECT_THAT(profile.counters, ElementsAre(Pair("lost", 300)));
  EXPECT_THAT(profile.findings, IsEmpty());
  EXPECT_EQ(profile.phase_name(2), "compile/lower");
}

TEST(ProfileLog, MergesLogsByAddingThemUp) {
  ProfileBuilder read;
  const std::string log = sample_log();
  ASSERT_TRUE(read_profile_log(as_bytes(log), "a", {}, read));
  ASSERT_TRUE(read_profile_log(as_bytes(log), "b", {}, read));
  EXPECT_EQ(read.profile().samples.size(), 4U);
  EXPECT_EQ(read.profile().stacks.size(), 3U);
  EXPECT_THAT(read.profile().counters, ElementsAre(Pair("lost", 600)));
}

TEST(ProfileLog, RefusesToReplaceAFileWhenTold) {
  const Result<TemporaryFolder> folder = TemporaryFolder::create();
  const std::filesystem::path path = folder->path() / "log";
  ASSERT_TRUE(ProfileLogWriter::create(path, true));
  const Result<ProfileLogWriter> again = ProfileLogWriter::create(path, true);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message(),
            "cannot create " + path.native() + ": File exists");
}

TEST(ProfileLog, RefusesOtherFiles) {
  ProfileBuilder read;
  const Result<> result = read_profile_log(as_bytes("PFPROF"), "x", {}, read);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(),
            "not a profile; postflight profile -o FILE writes one");
}

// Nothing that can be read points at something that is not there.
void expect_sound(const Profile& profile) {
  for (const ProfileSample& sample : profile.samples) {
    EXPECT_LT(sample.thread, profile.threads.size());
    EXPECT_LT(sample.stack, profile.stacks.size());
    EXPECT_LT(sample.phase, profile.phases.size());
  }
}

TEST(ProfileLog, KeepsWhatStandsBeforeACut) {
  const std::string log = sample_log();
  for (std::size_t size = 8; size < log.size(); ++size) {
    ProfileBuilder read;
    const std::string cut = log.substr(0, size);
    ASSERT_TRUE(read_profile_log(as_bytes(cut), "log", {}, read));
    EXPECT_LE(read.profile().samples.size(), 1U);
    expect_sound(read.profile());
  }
  ProfileBuilder read;
  ASSERT_TRUE(read_profile_log(
      as_bytes(std::string_view(log).substr(0, log.size() - 1)), "log", {},
      read));
  EXPECT_EQ(read.profile().samples.size(), 1U);
  ASSERT_EQ(read.profile().findings.size(), 1U);
  EXPECT_EQ(read.profile().findings[0].kind, "damaged_profile");
  EXPECT_EQ(read.profile().findings[0].where, "log");
}

TEST(ProfileLog, SurvivesEveryFlippedByte) {
  std::string log = sample_log();
  for (char& byte : log) {
    byte = static_cast<char>(byte ^ 0x41);
    ProfileBuilder read;
    if (read_profile_log(as_bytes(log), "log", {}, read)) {
      EXPECT_EQ(read.profile().findings.size(), 1U);
      expect_sound(read.profile());
    }
    byte = static_cast<char>(byte ^ 0x41);
  }
}

TEST(ProfileLog, StopsAtTheMostSamples) {
  ProfileBuilder read;
  ASSERT_TRUE(read_profile_log(as_bytes(sample_log()), "log",
                               {.max_profile_samples = 1}, read));
  EXPECT_EQ(read.profile().samples.size(), 1U);
  EXPECT_THAT(read.profile().findings[0].message,
              ::testing::EndsWith("more than 1 samples "
                                  "(Limits::max_profile_samples)"));
}

}  // namespace
}  // namespace postflight
