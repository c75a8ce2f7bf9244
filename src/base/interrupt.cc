#include "base/interrupt.h"

#include "base/leftovers.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace postflight {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

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

// Clean-ups run under the lock, so that their owners outlive that.
std::mutex cleanup_mutex;
std::vector<const std::function<void()>*> cleanups;

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

[[noreturn]] void end_process(const sigset_t& signals) {
  // From here on signals have their default action, in case the clean-up hangs
  // on a dead file system. The first one has to be dequeued before, or it would
  // be delivered now.
  const timespec at_once{};
  int first = 0;
  for (int signal = 0;
       (signal = ::sigtimedwait(&signals, nullptr, &at_once)) > 0;)
    first = first == 0 ? signal : first;
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  const std::lock_guard lock(cleanup_mutex);
  for (const std::function<void()>* const clean_up : cleanups)
    (*clean_up)();
  Leftovers::remove_all();
  InterruptGuard::die_of(first == 0 ? SIGINT : first);
}

}  // namespace

Result<InterruptGuard> InterruptGuard::start() {
  const sigset_t signals = signals_not_ignored();
  Descriptor queue(::signalfd(-1, &signals, SFD_CLOEXEC));
  InterruptGuard guard;
  guard.stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!queue.is_open() || !guard.stop_.is_open())
    return fail_errno("cannot watch for signals");
  ::pthread_sigmask(SIG_BLOCK, &signals, &guard.previous_mask_);
  try {
    guard.thread_ = std::jthread(
        [signals, queue = std::move(queue), stop = guard.stop_.number()] {
          while (wait_for_signal(queue, stop))
            if (!defer(queue))
              end_process(signals);
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

void InterruptGuard::die_of(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::kill(::getpid(), signal);
  // Not reached, unless the process is init of a container, which signals with
  // their default action do not end.
  ::_exit(128 + signal);
}

InterruptCleanup::InterruptCleanup(std::function<void()> clean_up)
    : clean_up_(std::move(clean_up)) {
  const std::lock_guard lock(cleanup_mutex);
  cleanups.push_back(&clean_up_);
}

InterruptCleanup::~InterruptCleanup() {
  const std::lock_guard lock(cleanup_mutex);
  std::erase(cleanups, &clean_up_);
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
