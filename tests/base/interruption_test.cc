#include "base/interruption.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "base/worker_pool.h"

namespace postflight {
namespace {

// Works until it is told to end; at most a minute.
Result<> work_until_interrupted() {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < deadline)
    TRY(check_interruption());
  return {};
}

TEST(Interruption, EndsWhatItsThreadDoes) {
  int asked = 0;
  const Interruption call([&asked] { return ++asked == 2; });

  const Result<> done = work_until_interrupted();

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::kIo);
  EXPECT_EQ(done.error().message(), "interrupted");
  EXPECT_TRUE(call.happened());
  EXPECT_EQ(asked, 2);  // and never again
  EXPECT_TRUE(interrupted());
  EXPECT_EQ(asked, 2);
}

TEST(Interruption, IsOfOneThreadOnly) {
  const Interruption call([] { return true; });
  std::jthread([] {
    EXPECT_EQ(Interruption::current(), nullptr);
    EXPECT_FALSE(interrupted());
  }).join();
}

TEST(Interruption, AsksOnTheCallingThreadAndEndsItsWorkers) {
  const std::thread::id self = std::this_thread::get_id();
  std::atomic<bool> asked_elsewhere = false;
  const Interruption call([&] {
    asked_elsewhere = asked_elsewhere || std::this_thread::get_id() != self;
    return true;
  });
  std::atomic<int> ended = 0;

  const Result<> done = WorkerPool(3).map_ordered(
      3,
      [&](std::size_t) {
        if (!work_until_interrupted())
          ++ended;
        return 0;
      },
      [](std::size_t, int) -> Result<> { return {}; });

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::kIo);
  EXPECT_EQ(ended, 3);
  EXPECT_FALSE(asked_elsewhere);
}

TEST(Interruption, EndsASingleThreadedPoolBetweenJobs) {
  const Interruption call([] { return true; });
  std::size_t jobs = 0;

  const Result<> done = WorkerPool(1).map_ordered(
      1'000'000,
      [&jobs](std::size_t) {
        ++jobs;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return 0;
      },
      [](std::size_t, int) -> Result<> { return {}; });

  EXPECT_FALSE(done);
  EXPECT_LT(jobs, 1'000'000U);
}

TEST(Interruption, LeavesAStepThatIsDoneToItsEndAlone) {
  const Interruption call([] { return true; });
  {
    const InterruptionScope to_the_end(nullptr);
    EXPECT_EQ(Interruption::current(), nullptr);
    EXPECT_FALSE(interrupted());
  }
  EXPECT_EQ(Interruption::current(), &call);
  EXPECT_FALSE(work_until_interrupted());
}

TEST(Interruption, OfACallInsideAnotherOneIsItsOwn) {
  const Interruption outer([] { return false; });
  {
    const Interruption inner([] { return true; });
    EXPECT_FALSE(work_until_interrupted());
    EXPECT_TRUE(inner.happened());
  }
  EXPECT_EQ(Interruption::current(), &outer);
  EXPECT_FALSE(interrupted());
}

}  // namespace
}  // namespace postflight
