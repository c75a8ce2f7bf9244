#pragma once

#include <cstdint>
#include <ctime>

#include <pthread.h>
#include <sys/types.h>

// Part of the agent: where perf events are refused, a thread of the agent polls
// the CPU clocks of the other threads and signals those that have used another
// interval.
//
// A signal can interrupt a blocking system call (EINTR), so a thread that is
// waiting gets none until it runs again.

namespace postflight {

// What the clock knows of a thread; it is stored in the thread's own memory.
struct ClockedThread {
  pid_t tid = 0;
  clockid_t clock = 0;
  std::uint64_t seen_ns = 0;  // CPU time at the last tick
  std::uint64_t owed_ns = 0;  // CPU time not sampled yet
  int activity = -1;          // its "syscall" file in /proc, or -1
  bool listed = false;
  ClockedThread* before = nullptr;
  ClockedThread* after = nullptr;
};

using CreateThread = int (*)(pthread_t*, const pthread_attr_t*,
                             void* (*)(void*), void*);

// Starts the clock thread. Returns an errno, or 0.
int start_clock(CreateThread create, int signal, std::uint64_t interval_ns);
// Signals the calling thread from now on, until it is removed.
int add_to_clock(ClockedThread& thread);
void remove_from_clock(ClockedThread& thread);
// While it is held, no signals are sent and the list does not change.
void hold_clock();
void release_clock();
// In a forked child, where the clock was held and its thread no longer exists.
void forget_clock();

}  // namespace postflight
