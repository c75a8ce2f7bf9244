#include "base/progress.h"

#include "base/display_width.h"
#include "base/fake_clock.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Terminal kScreen = {.stderr_is_terminal = true, .width = 100};

// A progress line, the clock it sees and the texts it writes.
class Watched {
 public:
  explicit Watched(ProgressOptions options, Terminal terminal = kScreen)
      : progress(
            terminal, clock,
            [this](std::string_view text) { texts.emplace_back(text); },
            std::move(options)) {}

  FakeClock clock;
  std::vector<std::string> texts;
  Progress progress;
};

TEST(Progress, ShowsBytesFilesRateAndTimeLeft) {
  Watched watched(
      {.label = "Reading", .total_bytes = 3'000'000'000, .total_files = 40});
  watched.clock.wait(2s);
  watched.progress.advance(1'500'000'000, 12);
  EXPECT_THAT(
      watched.texts,
      ElementsAre("\rReading  [##############...............]  50%  1.5 GB of "
                  "3.0 GB  12 of 40 files  750 MB/s  2 s left\x1b[K"));
}

TEST(Progress, DoesWithoutTotals) {
  Watched watched({});
  watched.clock.wait(2s);
  watched.progress.advance(1'500'000, 1);
  EXPECT_THAT(watched.texts, ElementsAre("\r1.5 MB  1 file  750 kB/s\x1b[K"));
}

TEST(Progress, GoesByFilesWhenBytesAreNotKnown) {
  Watched watched({.total_files = 4},
                  {.stderr_is_terminal = true, .width = 30});
  watched.clock.wait(1s);
  watched.progress.advance(0, 1);
  EXPECT_THAT(watched.texts,
              ElementsAre("\r25%  1 of 4 files  3 s left\x1b[K"));
}

TEST(Progress, IsSilentAboutWorkOfHalfASecond) {
  Watched watched({.total_bytes = 100});
  watched.clock.wait(499ms);
  watched.progress.advance(100);
  watched.progress.finish();
  EXPECT_THAT(watched.texts, IsEmpty());
}

TEST(Progress, IsDrawnAtMostTenTimesASecond) {
  Watched watched({.total_bytes = 10'000});
  for (int millisecond = 0; millisecond < 2000; ++millisecond) {
    watched.clock.wait(1ms);
    watched.progress.advance(5);
  }
  EXPECT_EQ(watched.texts.size(), 16U);
}

TEST(Progress, IsErasedWhenDone) {
  Watched watched({.total_bytes = 100});
  watched.clock.wait(1s);
  watched.progress.advance(50);
  watched.progress.finish();
  watched.clock.wait(1s);
  watched.progress.advance(50);
  watched.progress.finish();
  ASSERT_EQ(watched.texts.size(), 2U);
  EXPECT_EQ(watched.texts.back(), "\r\x1b[K");
}

TEST(Progress, IsErasedWhenItGoes) {
  FakeClock clock;
  std::vector<std::string> texts;
  {
    Progress progress(kScreen, clock,
                      [&](std::string_view text) { texts.emplace_back(text); },
                      {});
    clock.wait(1s);
    progress.advance(1000);
  }
  EXPECT_THAT(texts, ElementsAre("\r1.0 kB  1.0 kB/s\x1b[K", "\r\x1b[K"));
}

TEST(Progress, MakesWayForAMessageAndComesBack) {
  Watched watched({});
  watched.clock.wait(1s);
  watched.progress.advance(1000);
  watched.progress.erase();
  watched.progress.erase();
  watched.clock.wait(1s);
  watched.progress.advance(1000);
  EXPECT_THAT(watched.texts, ElementsAre("\r1.0 kB  1.0 kB/s\x1b[K", "\r\x1b[K",
                                         "\r2.0 kB  1.0 kB/s\x1b[K"));
}

TEST(Progress, IsAbsentWhereItCouldNotBeErased) {
  for (const Terminal& terminal :
       {Terminal{.stdout_is_terminal = true},
        Terminal{.stderr_is_terminal = true, .dumb = true}}) {
    Watched watched({}, terminal);
    watched.clock.wait(1s);
    watched.progress.advance(1000);
    watched.progress.finish();
    EXPECT_THAT(watched.texts, IsEmpty());
  }
}

TEST(Progress, IsAbsentWhenQuiet) {
  Watched watched({.quiet = true});
  watched.clock.wait(1s);
  watched.progress.advance(1000);
  watched.progress.finish();
  EXPECT_THAT(watched.texts, IsEmpty());
}

TEST(Progress, SaysTheMostImportantThingsInTwentyColumns) {
  Watched watched({.label = "Reading", .total_bytes = 3'000'000'000},
                  {.stderr_is_terminal = true, .width = 20});
  watched.clock.wait(2s);
  watched.progress.advance(1'500'000'000);
  EXPECT_THAT(watched.texts, ElementsAre("\rReading  50%\x1b[K"));
}

RC_GTEST_PROP(Progress, NeverWraps, ()) {
  const auto width = *rc::gen::inRange<std::size_t>(1, 130);
  const auto number = rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 10'000),
                                     rc::gen::arbitrary<std::uint64_t>());
  Watched watched({.label = *rc::gen::arbitrary<std::string>(),
                   .total_bytes = *number,
                   .total_files = *number},
                  {.stderr_is_terminal = true,
                   .unicode = *rc::gen::arbitrary<bool>(),
                   .width = width});
  watched.clock.wait(std::chrono::milliseconds(
      *rc::gen::inRange<std::int64_t>(500, 1'000'000'000)));
  watched.progress.advance(*number, *number);
  RC_ASSERT(watched.texts.size() == 1U);
  const std::string_view text = watched.texts.front();
  RC_ASSERT(text.front() == '\r');
  RC_ASSERT(text.substr(text.size() - 3) == "\x1b[K");
  RC_ASSERT(display_width(text.substr(1, text.size() - 4)) < width);
}

TEST(Progress, CountsFromSeveralThreads) {
  Watched watched({.total_files = 4001});
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([&] {
        for (int count = 0; count < 1000; ++count)
          watched.progress.advance(0, 1);
      });
  }
  watched.clock.wait(1s);
  watched.progress.advance(0, 1);
  EXPECT_THAT(watched.texts,
              ElementsAre(testing::HasSubstr("4001 of 4001 files")));
}

}  // namespace
}  // namespace postflight
