#pragma once

#include "base/clock.h"

#include <sched.h>

namespace postflight {

// Time that passes only when someone waits, or the test says so.
class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void wait(Duration duration) override { now_ += duration; }

 private:
  TimePoint now_{};
};

// Time that stands still while other processes get on with their work: no time
// limit ever passes.
class PatientClock final : public Clock {
 public:
  TimePoint now() const override { return {}; }
  void wait(Duration) override { ::sched_yield(); }
};

}  // namespace postflight
