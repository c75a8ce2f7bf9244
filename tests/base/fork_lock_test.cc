#include "base/fork_lock.h"

#include <atomic>
#include <mutex>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace postflight {
namespace {

// What the child's `body` returns as its status, or that it hung.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(ForkLock, AForkWaitsForTheMutexesOfTheProcess) {
  static std::mutex mutex;
  static int halves = 0;  // even, unless somebody holds the mutex
  hold_during_forks(mutex, 0);
  std::atomic<bool> ended = false;
  const std::jthread other([&ended] {
    while (!ended) {
      const std::lock_guard lock(mutex);
      ++halves;
      std::this_thread::yield();
      ++halves;
    }
  });

  for (int i = 0; i < 20; ++i) {
    const int status = status_of_child([] {
      const std::lock_guard lock(mutex);
      return halves % 2;
    });
    EXPECT_EQ(status, 0);
  }
  ended = true;
}

}  // namespace
}  // namespace postflight
