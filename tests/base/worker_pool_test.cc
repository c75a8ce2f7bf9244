#include "base/worker_pool.h"

#include "base/test_files.h"

#include <atomic>
#include <latch>
#include <memory>
#include <new>
#include <numeric>
#include <thread>

#include <sched.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace postflight {
namespace {

RC_GTEST_PROP(WorkerPool, DeliversResultsInOrder, ()) {
  const WorkerPool pool(*rc::gen::inRange<std::size_t>(1, 9));
  const auto count = *rc::gen::inRange<std::size_t>(0, 200);
  std::vector<std::size_t> squares;

  const Result<> result = pool.map_ordered(
      count, [](std::size_t index) { return index * index; },
      [&](std::size_t index, std::size_t square) -> Result<> {
        RC_ASSERT(index == squares.size());
        squares.push_back(square);
        return {};
      });

  RC_ASSERT(result.has_value());
  RC_ASSERT(squares.size() == count);
  for (std::size_t index = 0; index < count; ++index)
    RC_ASSERT(squares[index] == index * index);
}

TEST(WorkerPool, RunsJobsAtTheSameTime) {
  // Each job waits for the other one to have started.
  std::latch both_started(2);
  const Result<> result = WorkerPool(2).map_ordered(
      2,
      [&](std::size_t index) {
        both_started.arrive_and_wait();
        return index;
      },
      [](std::size_t, std::size_t) -> Result<> { return {}; });
  EXPECT_TRUE(result.has_value());
}

TEST(WorkerPool, DoesNotRunFarAheadOfTheConsumer) {
  constexpr std::size_t kThreads = 3;
  std::atomic<std::size_t> consumed = 0;
  std::atomic<std::size_t> too_early = 0;
  const Result<> result = WorkerPool(kThreads).map_ordered(
      2000,
      [&](std::size_t index) {
        if (index >= consumed + 2 * kThreads)
          ++too_early;
        return std::make_unique<std::size_t>(index);
      },
      [&](std::size_t, std::unique_ptr<std::size_t>&&) -> Result<> {
        ++consumed;
        return {};
      });
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(consumed, 2000U);
  EXPECT_EQ(too_early, 0U);
}

TEST(WorkerPool, StopsWhenTheConsumerFails) {
  for (const std::size_t threads : {1U, 4U}) {
    std::atomic<std::size_t> started = 0;
    const Result<> result = WorkerPool(threads).map_ordered(
        1'000'000'000, [&](std::size_t) { return ++started; },
        [](std::size_t index, std::size_t) -> Result<> {
          if (index == 10)
            return fail(ErrorKind::kCorrupt, "dump {} is broken", index);
          return {};
        });
    EXPECT_EQ(message_of(result), "dump 10 is broken");
    EXPECT_LE(started, 11 + 2 * threads);
  }
}

TEST(WorkerPool, ThrowsAgainWhatAJobThrewWhenItsTurnHasCome) {
  for (const std::size_t threads : {1U, 4U}) {
    std::vector<std::size_t> consumed;
    const auto run = [&] {
      return WorkerPool(threads).map_ordered(
          100,
          [](std::size_t index) {
            if (index == 3)
              throw std::bad_alloc();
            return index;
          },
          [&](std::size_t index, std::size_t) -> Result<> {
            consumed.push_back(index);
            return {};
          });
    };
    EXPECT_THROW(static_cast<void>(run()), std::bad_alloc);
    EXPECT_EQ(consumed, (std::vector<std::size_t>{0, 1, 2}));
  }
}

TEST(WorkerPool, RunsOnTheCallingThreadWhenThereIsOne) {
  const std::thread::id caller = std::this_thread::get_id();
  const Result<> result = WorkerPool(1).map_ordered(
      10, [](std::size_t) { return std::this_thread::get_id(); },
      [&](std::size_t, std::thread::id worker) -> Result<> {
        EXPECT_EQ(worker, caller);
        return {};
      });
  EXPECT_TRUE(result.has_value());
}

TEST(WorkerPool, ConsumesOnTheCallingThread) {
  const std::thread::id caller = std::this_thread::get_id();
  const Result<> result = WorkerPool(4).map_ordered(
      10, [](std::size_t) { return std::this_thread::get_id(); },
      [&](std::size_t, std::thread::id worker) -> Result<> {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_NE(worker, caller);
        return {};
      });
  EXPECT_TRUE(result.has_value());
}

TEST(WorkerPool, CarriesErrorsOfJobsAsResults) {
  const Result<> result = WorkerPool(2).map_ordered(
      10,
      [](std::size_t index) -> Result<int> {
        if (index == 4)
          return fail(ErrorKind::kIo, "no dump {}", index);
        return 1;
      },
      [](std::size_t, Result<int>&& value) -> Result<> {
        TRY(std::move(value));
        return {};
      });
  EXPECT_EQ(message_of(result), "no dump 4");
}

TEST(WorkerPool, HasOneThreadForEachProcessorItMayUse) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(WorkerPool().threads(),
            static_cast<std::size_t>(CPU_COUNT(&before)));

  cpu_set_t one;
  CPU_ZERO(&one);
  for (int processor = 0; CPU_COUNT(&one) == 0; ++processor)
    if (CPU_ISSET(processor, &before))
      CPU_SET(processor, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(WorkerPool().threads(), 1U);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace postflight
