#include "base/clock.h"

#include <thread>

namespace postflight {

Clock::TimePoint SteadyClock::now() const {
  return std::chrono::steady_clock::now();
}

void SteadyClock::wait(Duration duration) {
  std::this_thread::sleep_for(duration);
}

}  // namespace postflight
