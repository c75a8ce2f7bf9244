#include "profile/agent/clock.h"

#include <cerrno>
#include <csignal>
#include <cstddef>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profile/agent/memory.h"

namespace postflight {
namespace {

// A thread that ran while the clock thread was delayed is owed at most this
// many samples; more would only show where it is afterwards.
constexpr std::uint64_t kMostOwed = 4;

struct Clock {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  ClockedThread* first = nullptr;
  int signal = 0;
  std::uint64_t interval_ns = 0;
};
Clock state;

std::uint64_t read_clock(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

bool waits(const ClockedThread& thread) {
  char first = 'r';
  return thread.activity >= 0 && ::pread(thread.activity, &first, 1, 0) == 1 &&
         first != 'r';
}

void tick() {
  for (ClockedThread* at = state.first; at != nullptr; at = at->after) {
    const std::uint64_t now = read_clock(at->clock);
    at->owed_ns += now - at->seen_ns;
    at->seen_ns = now;
    if (at->owed_ns < state.interval_ns || waits(*at))
      continue;
    at->owed_ns -= state.interval_ns;
    if (at->owed_ns > kMostOwed * state.interval_ns)
      at->owed_ns = kMostOwed * state.interval_ns;
    ::syscall(SYS_tgkill, ::getpid(), at->tid, state.signal);
  }
}

void* run(void*) {
  std::uint64_t next = read_clock(CLOCK_MONOTONIC);
  while (true) {
    const std::uint64_t now = read_clock(CLOCK_MONOTONIC);
    next += state.interval_ns;
    if (next < now)
      next = now;
    const timespec until = {static_cast<time_t>(next / 1'000'000'000),
                            static_cast<long>(next % 1'000'000'000)};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    hold_clock();
    tick();
    release_clock();
  }
}

// "/proc/self/task/<tid>/syscall" in `path`.
void write_path(pid_t tid, char* path) {
  for (const char* from = "/proc/self/task/"; *from != 0; ++from)
    *path++ = *from;
  path = write_number(path, tid);
  for (const char* from = "/syscall"; *from != 0; ++from)
    *path++ = *from;
  *path = 0;
}

}  // namespace

int start_clock(CreateThread create, int signal, std::uint64_t interval_ns) {
  state.signal = signal;
  state.interval_ns = interval_ns;
  // The clock thread must not handle the program's signals.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // It needs little itself, but all thread-local variables are on its stack,
  // too.
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
  pthread_t thread;
  const int error = create(&thread, &attributes, run, nullptr);
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

int add_to_clock(ClockedThread& thread) {
  thread = {};
  thread.tid = ::gettid();
  if (::pthread_getcpuclockid(::pthread_self(), &thread.clock) != 0)
    return ESRCH;
  thread.seen_ns = read_clock(thread.clock);
  char path[64];
  write_path(thread.tid, path);
  thread.activity = ::open(path, O_RDONLY | O_CLOEXEC);
  hold_clock();
  thread.after = state.first;
  if (state.first != nullptr)
    state.first->before = &thread;
  state.first = &thread;
  thread.listed = true;
  release_clock();
  return 0;
}

void remove_from_clock(ClockedThread& thread) {
  if (!thread.listed)
    return;
  hold_clock();
  (thread.before != nullptr ? thread.before->after : state.first) =
      thread.after;
  if (thread.after != nullptr)
    thread.after->before = thread.before;
  thread.listed = false;
  release_clock();
  if (thread.activity >= 0)
    ::close(thread.activity);
}

void hold_clock() {
  ::pthread_mutex_lock(&state.lock);
}

void release_clock() {
  ::pthread_mutex_unlock(&state.lock);
}

// A forked child inherits the descriptors of its parent's threads.
void forget_clock() {
  for (ClockedThread* at = state.first; at != nullptr; at = at->after)
    if (at->activity >= 0)
      ::close(at->activity);
  state = {};
}

}  // namespace postflight
