#include "profile/agent/signal_mask.h"

#include <atomic>
#include <cerrno>

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace postflight {
namespace {

using MaskFunction = int (*)(int, const sigset_t*, sigset_t*);

std::atomic<int> hidden = 0;  // 0: nothing is hidden yet

struct HiddenSignal {
  bool blocked;
  bool kept;
  siginfo_t info;
};
[[gnu::tls_model("initial-exec")]] thread_local HiddenSignal mine;

template <class Function>
Function real(std::atomic<Function>& known, const char* name) {
  if (known.load(std::memory_order_relaxed) == nullptr)
    known = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
  return known.load(std::memory_order_relaxed);
}

int real_mask(int how, const sigset_t* set, sigset_t* old) {
  static std::atomic<MaskFunction> known = nullptr;
  return real(known, "pthread_sigmask")(how, set, old);
}

bool has_hidden(const sigset_t* set) {
  const int signal = hidden.load(std::memory_order_relaxed);
  return signal != 0 && set != nullptr && ::sigismember(set, signal) == 1;
}

sigset_t without_hidden(const sigset_t& set) {
  sigset_t rest = set;
  ::sigdelset(&rest, hidden);
  return rest;
}

// As pthread_sigmask(): returns an errno.
int change_mask(int how, const sigset_t* set, sigset_t* old) {
  const int signal = hidden.load(std::memory_order_relaxed);
  if (signal == 0)
    return real_mask(how, set, old);
  const bool before = mine.blocked;
  const bool inside = has_hidden(set);
  sigset_t rest;
  if (set != nullptr)
    rest = without_hidden(*set);
  const int error = real_mask(how, set == nullptr ? nullptr : &rest, old);
  if (error != 0)
    return error;
  if (set != nullptr && how == SIG_SETMASK)
    mine.blocked = inside;
  else if (inside)
    mine.blocked = how == SIG_BLOCK;
  if (old != nullptr && before)
    ::sigaddset(old, signal);
  if (!mine.blocked && mine.kept) {
    mine.kept = false;
    ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), signal,
              &mine.info);
  }
  return 0;
}

// Whether a signal that was kept is one that the program waits for.
bool take_kept(const sigset_t* set, siginfo_t& info) {
  if (!has_hidden(set) || !mine.kept)
    return false;
  mine.kept = false;
  info = mine.info;
  return true;
}

}  // namespace

void hide_signal(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  sigset_t before;
  ::sigemptyset(&before);
  real_mask(SIG_UNBLOCK, &set, &before);
  mine.blocked = ::sigismember(&before, signal) == 1;
  hidden = signal;
}

bool signal_looks_blocked() {
  return mine.blocked;
}

void set_signal_looks_blocked(bool blocked) {
  mine.blocked = blocked;
}

bool keep_signal(const siginfo_t& info) {
  // The kernel does not block what an instruction causes.
  const bool is_breakpoint = hidden == SIGTRAP && info.si_code > 0;
  if (!mine.blocked || is_breakpoint)
    return false;
  mine.info = info;
  mine.kept = true;
  return true;
}

void really_block_signal() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, hidden);
  if (mine.blocked)
    real_mask(SIG_BLOCK, &set, nullptr);
}

void really_unblock_signal() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, hidden);
  if (mine.blocked)
    real_mask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace postflight

// Replace functions of the C library.
extern "C" {

[[gnu::visibility("default")]] int pthread_sigmask(int how, const sigset_t* set,
                                                   sigset_t* old) noexcept {
  return postflight::change_mask(how, set, old);
}

[[gnu::visibility("default")]] int sigprocmask(int how, const sigset_t* set,
                                               sigset_t* old) noexcept {
  const int error = postflight::change_mask(how, set, old);
  if (error == 0)
    return 0;
  errno = error;
  return -1;
}

[[gnu::visibility("default")]] int sigtimedwait(const sigset_t* set,
                                                siginfo_t* info,
                                                const timespec* time) {
  using namespace postflight;
  static std::atomic<int (*)(const sigset_t*, siginfo_t*, const timespec*)>
      known = nullptr;
  if (!has_hidden(set))
    return real(known, "sigtimedwait")(set, info, time);
  siginfo_t kept;
  if (take_kept(set, kept)) {
    if (info != nullptr)
      *info = kept;
    return kept.si_signo;
  }
  const sigset_t rest = without_hidden(*set);
  return real(known, "sigtimedwait")(&rest, info, time);
}

[[gnu::visibility("default")]] int sigwaitinfo(const sigset_t* set,
                                               siginfo_t* info) {
  return ::sigtimedwait(set, info, nullptr);
}

[[gnu::visibility("default")]] int sigwait(const sigset_t* set, int* signal) {
  using namespace postflight;
  static std::atomic<int (*)(const sigset_t*, int*)> known = nullptr;
  if (!has_hidden(set))
    return real(known, "sigwait")(set, signal);
  siginfo_t kept;
  if (take_kept(set, kept)) {
    *signal = kept.si_signo;
    return 0;
  }
  const sigset_t rest = without_hidden(*set);
  return real(known, "sigwait")(&rest, signal);
}

[[gnu::visibility("default")]] int signalfd(int file, const sigset_t* set,
                                            int flags) noexcept {
  using namespace postflight;
  static std::atomic<int (*)(int, const sigset_t*, int)> known = nullptr;
  if (!has_hidden(set))
    return real(known, "signalfd")(file, set, flags);
  const sigset_t rest = without_hidden(*set);
  return real(known, "signalfd")(file, &rest, flags);
}

}  // extern "C"
