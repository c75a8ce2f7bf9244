#pragma once

#include <atomic>
#include <chrono>
#include <functional>

#include "base/error.h"

namespace postflight {

// Lets the caller of a long function end it early. His function is asked now
// and then, and only on the thread that called, so that it may do what only
// that thread can: in Python, run the handlers of signals. The workers of a
// call see the answer as a flag.
//
// It belongs to a call and not to a Context, which several threads may share
// of which only one is interrupted; so it is found through the thread.
class Interruption {
 public:
  // For what the calling thread does while it lives. `asked` returns whether
  // to end, and then the call fails, whatever it has done meanwhile.
  explicit Interruption(std::function<bool()> asked);
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  bool happened() const { return happened_.load(std::memory_order_relaxed); }

  // That of the call that this thread works for; nullptr: it can't be ended.
  static Interruption* current();

  // How often `asked` is called at most.
  static constexpr std::chrono::milliseconds kPause{50};

 private:
  friend class InterruptionScope;
  friend bool interrupted();
  bool ask();

  const std::function<bool()> asked_;
  Interruption* const outer_;
  std::chrono::steady_clock::time_point next_;
  std::atomic<bool> happened_ = false;
};

// While it lives, this thread works for another thread's call; or, with
// nullptr, for none, as in a step that has to be done to its end.
class InterruptionScope {
 public:
  explicit InterruptionScope(Interruption* of);
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;
  ~InterruptionScope();

 private:
  Interruption* const before_;
  const bool was_owner_;
};

// Whether to end, for loops over blocks of some 100 KB, as it may look at the
// clock. An error instead where that is what to do.
bool interrupted();
Result<> check_interruption();

}  // namespace postflight
