#pragma once

#include <chrono>

namespace postflight {

// A source of time, injectable so that tests can use a fake one.
class Clock {
 public:
  using Duration = std::chrono::nanoseconds;
  using TimePoint =
      std::chrono::time_point<std::chrono::steady_clock, Duration>;

  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  virtual void wait(Duration duration) = 0;
};

// The machine's steady clock.
class SteadyClock final : public Clock {
 public:
  TimePoint now() const override;
  void wait(Duration duration) override;
};

}  // namespace postflight
