#include "profile/agent/clock.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace postflight {
namespace {

constexpr unsigned kCloseRangeUnshare = 2;  // CLOSE_RANGE_UNSHARE

constexpr int kMostToClose = 1024;

struct Clock {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  ClockedThread* first = nullptr;
  int signal = 0;
  std::uint64_t interval_ns = 0;
  bool own_files = false;  // the clock thread has a table of its own
  int to_close[kMostToClose] = {};
  int to_close_count = 0;
};
Clock state;

std::uint64_t read_clock(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

char* write_number(char* to, int number) {
  char digits[16];
  int count = 0;
  for (; number != 0; number /= 10)
    digits[count++] = static_cast<char>('0' + number % 10);
  while (count != 0)
    *to++ = digits[--count];
  return to;
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

bool waits(ClockedThread& thread) {
  constexpr int kUnknown = -2;
  char first = 'r';
  if (thread.activity == -1 && state.own_files) {
    char path[64];
    write_path(thread.tid, path);
    thread.activity = ::open(path, O_RDONLY | O_CLOEXEC);
    if (thread.activity < 0)
      thread.activity = kUnknown;
  }
  return thread.activity >= 0 && ::pread(thread.activity, &first, 1, 0) == 1 &&
         first != 'r';
}

std::uint64_t shortest_period(std::uint64_t interval_ns) {
  return interval_ns / 4 * 3;
}

// Called at random moments, so that no program runs in lockstep with the clock.
void tick() {
  while (state.to_close_count > 0)
    ::close(state.to_close[--state.to_close_count]);
  for (ClockedThread* at = state.first; at != nullptr; at = at->after) {
    const std::uint64_t now = read_clock(at->clock);
    at->owed_ns += now - at->seen_ns;
    at->seen_ns = now;
    if (at->owed_ns < at->due_ns || waits(*at))
      continue;
    // The weight of a sample is what its thread ran, so nothing is lost if the
    // clock was late.
    at->owed_ns = 0;
    at->due_ns = shortest_period(state.interval_ns);
    siginfo_t info = {};
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_value.sival_ptr = const_cast<char*>(&kClockMark);
    ::syscall(SYS_rt_tgsigqueueinfo, info.si_pid, at->tid, state.signal, &info);
  }
}

void* run(void* tid) {
  static_cast<std::atomic<std::int32_t>*>(tid)->store(::gettid());
  // Unshares the table and closes what it has inherited, which would keep the
  // program's pipes open. Linux cannot before 5.9; waiting threads are not
  // recognised then.
  state.own_files =
      ::syscall(SYS_close_range, 0U, ~0U, kCloseRangeUnshare) == 0;
  std::uint64_t next = read_clock(CLOCK_MONOTONIC);
  while (true) {
    const std::uint64_t now = read_clock(CLOCK_MONOTONIC);
    next += random_period(state.interval_ns);
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

}  // namespace

const char kClockMark = 0;

std::uint64_t random_start(std::uint64_t interval_ns) {
  // Threads may mix up each other's state, which makes it no less random.
  static std::atomic<std::uint64_t> seed = 0;
  std::uint64_t value = seed.fetch_add(0x9e3779b97f4a7c15) ^
                        read_clock(CLOCK_MONOTONIC) ^
                        (static_cast<std::uint64_t>(::getpid()) << 40);
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return (value ^ (value >> 31)) % (interval_ns + 1);
}

std::uint64_t random_period(std::uint64_t interval_ns) {
  return shortest_period(interval_ns) + random_start(interval_ns / 2);
}

int start_clock(CreateThread create, int signal, std::uint64_t interval_ns,
                std::atomic<std::int32_t>& tid) {
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
  const int error = create(&thread, &attributes, run, &tid);
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

int add_to_clock(ClockedThread& thread, std::uint64_t first_ns) {
  thread = {};
  thread.tid = ::gettid();
  if (::pthread_getcpuclockid(::pthread_self(), &thread.clock) != 0)
    return ESRCH;
  thread.seen_ns = read_clock(thread.clock);
  thread.due_ns = first_ns;
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
  // The clock thread closes what it has opened.
  if (thread.activity >= 0 && state.to_close_count < kMostToClose)
    state.to_close[state.to_close_count++] = thread.activity;
  release_clock();
}

void hold_clock() {
  ::pthread_mutex_lock(&state.lock);
}

void release_clock() {
  ::pthread_mutex_unlock(&state.lock);
}

// The descriptors of the clock thread are not those of the forked child.
void forget_clock() {
  state = {};
}

}  // namespace postflight
