#include "base/fork_lock.h"

#include <array>
#include <atomic>
#include <cstddef>

#include <pthread.h>

namespace postflight {
namespace {

constexpr std::size_t kRanks = 3;

constinit std::array<std::atomic<std::mutex*>, kRanks> held = {};

void before_fork() {
  for (const std::atomic<std::mutex*>& mutex : held)
    if (mutex != nullptr)
      mutex.load()->lock();
}

void after_fork() {
  for (std::size_t i = held.size(); i-- > 0;)
    if (held[i] != nullptr)
      held[i].load()->unlock();
}

}  // namespace

void hold_during_forks(std::mutex& mutex, int rank) {
  static const int watched =
      ::pthread_atfork(before_fork, after_fork, after_fork);
  static_cast<void>(watched);
  held[static_cast<std::size_t>(rank)] = &mutex;
}

}  // namespace postflight
