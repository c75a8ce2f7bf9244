#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include <pthread.h>
#include <sys/types.h>

// Part of the agent: where perf events are refused, a thread of the agent polls
// the CPU clocks of the other threads and signals those that have used another
// interval.
//
// A signal can interrupt a blocking system call (EINTR), so a thread that is
// waiting gets none until it runs again. The clock thread has a table of file
// descriptors of its own, so the program does not see those that it uses.

namespace postflight {

// What the clock knows of a thread; it is stored in the thread's own memory.
struct ClockedThread {
  pid_t tid = 0;
  clockid_t clock = 0;
  std::uint64_t seen_ns = 0;  // CPU time at the last tick
  std::uint64_t owed_ns = 0;  // CPU time not sampled yet
  std::uint64_t due_ns = 0;   // how much of that makes the next sample
  int activity = -1;          // its "syscall" file in /proc, -1: not opened yet
  bool listed = false;
  ClockedThread* before = nullptr;
  ClockedThread* after = nullptr;
};

using CreateThread = int (*)(pthread_t*, const pthread_attr_t*,
                             void* (*)(void*), void*);

// What the signals carry, so that they are not taken for those of others.
extern const char kClockMark;

// A time between 3/4 and 5/4 of the interval.
std::uint64_t random_period(std::uint64_t interval_ns);
// A time between 0 and the interval.
std::uint64_t random_start(std::uint64_t interval_ns);

// Starts the clock thread, which writes its own number to `tid`. Returns an
// errno, or 0.
int start_clock(CreateThread create, int signal, std::uint64_t interval_ns,
                std::atomic<std::int32_t>& tid);
// Signals the calling thread from now on, until it is removed; first after
// `first_ns` of CPU time. Returns an errno, or 0.
int add_to_clock(ClockedThread& thread, std::uint64_t first_ns);
void remove_from_clock(ClockedThread& thread);
// While it is held, no signals are sent and the list does not change.
void hold_clock();
void release_clock();
// In a forked child, where the clock was held and its thread no longer exists.
void forget_clock();

}  // namespace postflight
