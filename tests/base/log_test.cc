#include "base/log.h"

#include "base/test_files.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postflight {
namespace {

using enum LogLevel;
using testing::ElementsAre;

// A log that keeps what it is told as "level channel: message".
struct KeptLog {
  std::vector<std::string> lines;
  Log log{[this](LogLevel level, std::string_view channel,
                 std::string_view message) {
    lines.push_back(
        fmt::format("{} {}: {}", static_cast<int>(level), channel, message));
  }};
};

TEST(Log, DeliversMessagesFromInfoOn) {
  KeptLog kept;
  kept.log.write(kDebug, "zip", "offset {}", 4);
  kept.log.write(kInfo, "zip", "{} entries", 12);
  kept.log.write(kWarning, "unwinder", "no symbols");
  EXPECT_THAT(kept.lines,
              ElementsAre("1 zip: 12 entries", "2 unwinder: no symbols"));
}

TEST(Log, HasALevelForEachChannel) {
  KeptLog kept;
  kept.log.set_level("zip", kDebug);
  kept.log.set_level("unwinder", kError);
  for (const char* channel : {"zip", "unwinder", "other"})
    for (const LogLevel level : {kDebug, kInfo, kWarning, kError})
      kept.log.write(level, channel, "x");
  EXPECT_THAT(kept.lines, ElementsAre("0 zip: x", "1 zip: x", "2 zip: x",
                                      "3 zip: x", "3 unwinder: x", "1 other: x",
                                      "2 other: x", "3 other: x"));
}

TEST(Log, DropsEverythingWithoutASink) {
  Log log;
  log.write(kError, "zip", "nobody hears this");
  EXPECT_EQ(log.level("zip"), kInfo);
}

TEST(Log, DeliversOneMessageAtATime) {
  KeptLog kept;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&] {
        for (int count = 0; count < 100; ++count) {
          const ScopedLogLevel quiet(kept.log, "other", kError);
          kept.log.write(kInfo, "zip", "x");
        }
      });
  }
  EXPECT_EQ(kept.lines.size(), 400U);
}

TEST(ScopedLogLevel, HoldsUntilTheEndOfItsScope) {
  Log log;
  {
    const ScopedLogLevel outer(log, "zip", kError);
    {
      const ScopedLogLevel inner(log, "zip", kDebug);
      EXPECT_EQ(log.level("zip"), kDebug);
      EXPECT_EQ(log.level("other"), kInfo);
    }
    EXPECT_EQ(log.level("zip"), kError);
  }
  EXPECT_EQ(log.level("zip"), kInfo);
}

Result<> fail_while_quiet(Log& log) {
  const ScopedLogLevel quiet(log, "zip", kError);
  TRY(Result<>(fail(ErrorKind::kIo, "the disk is gone")));
  return {};
}

TEST(ScopedLogLevel, EndsWhenAnErrorPasses) {
  Log log;
  EXPECT_EQ(message_of(fail_while_quiet(log)), "the disk is gone");
  EXPECT_EQ(log.level("zip"), kInfo);
}

TEST(ScopedLogLevel, EndsWhenAnExceptionPasses) {
  Log log;
  try {
    const ScopedLogLevel quiet(log, "zip", kError);
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
  }
  EXPECT_EQ(log.level("zip"), kInfo);
}

}  // namespace
}  // namespace postflight
