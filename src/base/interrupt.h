#pragma once

#include "base/descriptor.h"
#include "base/error.h"

#include <csignal>
#include <functional>
#include <thread>

namespace postflight {

// Ends the process cleanly on SIGINT, SIGTERM or SIGHUP: runs the
// InterruptCleanups, removes all Leftovers, and dies of the signal, so that a
// shell's loop around it ends, too. A second signal ends it at once.
//
// Create one in main before any other thread: it blocks the signals, threads
// inherit the mask, and the guard's own thread waits for them, so the clean-up
// is ordinary code rather than a signal handler. A signal that was ignored at
// the start (nohup) stays ignored.
class InterruptGuard {
 public:
  static Result<InterruptGuard> start();

  InterruptGuard(InterruptGuard&&) noexcept = default;
  InterruptGuard& operator=(InterruptGuard&&) = delete;
  // Stops the thread and unblocks the signals in the calling thread.
  ~InterruptGuard();

  // The calling thread's signal mask without the signals above. A child
  // inherits its parent thread's mask and could not be interrupted with it, so
  // give it this one: POSIX_SPAWN_SETSIGMASK, or sigprocmask between fork and
  // exec.
  static sigset_t child_mask();

  // Ends the process by a signal's default action, whatever the mask.
  [[noreturn]] static void die_of(int signal);

 private:
  InterruptGuard() = default;

  sigset_t previous_mask_;
  Descriptor stop_;
  std::jthread thread_;
};

// While one exists, a signal that ends the process calls `clean_up` before, on
// the guard's thread: to erase a progress line.
class InterruptCleanup {
 public:
  explicit InterruptCleanup(std::function<void()> clean_up);
  InterruptCleanup(const InterruptCleanup&) = delete;
  InterruptCleanup& operator=(const InterruptCleanup&) = delete;
  ~InterruptCleanup();

 private:
  std::function<void()> clean_up_;
};

// While one exists, a signal that the guard waits for calls `instead` on the
// guard's thread and the process continues: for work that the user stops with
// Ctrl-C to see its results. At most one at a time.
class InterruptDeferral {
 public:
  using Handler = std::function<void(int signal, bool from_terminal)>;

  explicit InterruptDeferral(Handler instead);
  InterruptDeferral(const InterruptDeferral&) = delete;
  InterruptDeferral& operator=(const InterruptDeferral&) = delete;
  ~InterruptDeferral();
};

}  // namespace postflight
