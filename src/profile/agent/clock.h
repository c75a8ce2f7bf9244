#pragma once

#include <cstdint>
#include <ctime>

#include <pthread.h>
#include <sys/types.h>

// Part of the agent: where perf events are refused, a thread of the agent's own
// looks at the other threads' CPU clocks, and sends a signal to those that have
// used up another interval.
//
// A signal can end a system call that waits (EINTR), so a thread that waits at
// the moment is left alone until it runs again.

namespace postflight {

// What the clock knows of a thread. Lies in the thread's own memory.
struct ClockedThread {
  pid_t tid = 0;
  clockid_t clock = 0;
  std::uint64_t seen_ns = 0;  // of its CPU time
  std::uint64_t owed_ns = 0;  // of that, not yet sampled
  int activity = -1;          // its "syscall" file in /proc, or -1
  bool listed = false;
  ClockedThread* before = nullptr;
  ClockedThread* after = nullptr;
};

using CreateThread = int (*)(pthread_t*, const pthread_attr_t*,
                             void* (*)(void*), void*);

// Starts the clock; the error, or 0.
int start_clock(CreateThread create, int signal, std::uint64_t interval_ns);
// The calling thread, from now on and until it is removed.
int add_to_clock(ClockedThread& thread);
void remove_from_clock(ClockedThread& thread);
// While it is held, no signals are sent and the list does not change.
void hold_clock();
void release_clock();
// In a forked child, of a clock that was held: there is none any more.
void forget_clock();

}  // namespace postflight
