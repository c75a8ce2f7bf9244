#include "base/interrupt.h"

#include "base/leftovers.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace postflight {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr int kInterrupted = 130;  // a shell's exit status for SIGINT

sigset_t signals_not_ignored() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kSignals) {
    struct sigaction action;
    if (::sigaction(signal, nullptr, &action) == 0 &&
        action.sa_handler != SIG_IGN)
      sigaddset(&signals, signal);
  }
  return signals;
}

// Signals are delivered to the process, so the deferral handler is
// process-wide, too.
std::mutex deferral_mutex;
InterruptDeferral::Handler deferred;

// Whether a deferral handled the signal, which is dequeued then.
bool defer(const Descriptor& signals) {
  const std::lock_guard lock(deferral_mutex);
  if (!deferred)
    return false;
  signalfd_siginfo info;
  if (::read(signals.number(), &info, sizeof(info)) == sizeof(info))
    deferred(static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL);
  return true;
}

// Returns true for a signal, false when told to stop.
bool wait_for_signal(const Descriptor& signals, int stop) {
  std::array<pollfd, 2> watched = {
      pollfd{signals.number(), POLLIN, 0},
      pollfd{stop, POLLIN, 0},
  };
  while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
  }
  return (watched[0].revents & POLLIN) != 0;
}

[[noreturn]] void end_process(const sigset_t& signals,
                              const std::function<void()>& before_exit) {
  // From here on signals have their default action, in case the clean-up hangs
  // on a dead file system. The first one has to be dequeued before, or it would
  // be delivered now.
  const timespec at_once{};
  while (::sigtimedwait(&signals, nullptr, &at_once) > 0) {
  }
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  if (before_exit)
    before_exit();
  Leftovers::remove_all();
  ::_exit(kInterrupted);
}

}  // namespace

Result<InterruptGuard> InterruptGuard::start(
    std::function<void()> before_exit) {
  const sigset_t signals = signals_not_ignored();
  Descriptor queue(::signalfd(-1, &signals, SFD_CLOEXEC));
  InterruptGuard guard;
  guard.stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!queue.is_open() || !guard.stop_.is_open())
    return fail_errno("cannot watch for signals");
  ::pthread_sigmask(SIG_BLOCK, &signals, &guard.previous_mask_);
  try {
    guard.thread_ = std::jthread([signals, queue = std::move(queue),
                                  stop = guard.stop_.number(),
                                  before_exit = std::move(before_exit)] {
      while (wait_for_signal(queue, stop))
        if (!defer(queue))
          end_process(signals, before_exit);
    });
  } catch (const std::system_error& error) {
    ::pthread_sigmask(SIG_SETMASK, &guard.previous_mask_, nullptr);
    return fail(ErrorKind::kIo, "cannot start a thread: {}",
                error.code().message());
  }
  return guard;
}

InterruptGuard::~InterruptGuard() {
  if (!thread_.joinable())
    return;
  const std::uint64_t one = 1;
  if (::write(stop_.number(), &one, sizeof(one)) > 0)
    thread_.join();
  else
    thread_.detach();
  ::pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

InterruptDeferral::InterruptDeferral(Handler instead) {
  const std::lock_guard lock(deferral_mutex);
  deferred = std::move(instead);
}

InterruptDeferral::~InterruptDeferral() {
  const std::lock_guard lock(deferral_mutex);
  deferred = nullptr;
}

sigset_t InterruptGuard::child_mask() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (const int signal : kSignals)
    sigdelset(&mask, signal);
  return mask;
}

}  // namespace postflight
