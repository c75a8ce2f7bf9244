#pragma once

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/terminal.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace postflight {

struct ProgressOptions {
  std::string label = {};         // "Reading"; escaped here
  std::uint64_t total_bytes = 0;  // 0: not known
  std::uint64_t total_files = 0;  // 0: not known
  bool quiet = false;
};

// A progress line on stderr for work that takes longer than half a second. It
// is redrawn at most ten times per second, never wraps, and is erased when the
// work is done. There is none if it could not be erased: when stderr is not a
// terminal, or a dumb one.
class Progress {
 public:
  // Writes to stderr, unbuffered. Called by one thread at a time.
  using Sink = std::function<void(std::string_view text)>;

  // `clock` has to outlive it.
  Progress(const Terminal& terminal, const Clock& clock, Sink sink,
           ProgressOptions options);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  // Cheap, and safe from any thread.
  void advance(std::uint64_t bytes, std::uint64_t files = 0);
  // Erases the line until the next update, to make room for a message.
  void erase();
  // Erases the line for good.
  void finish();

 private:
  void draw(Clock::TimePoint now);

  const Terminal terminal_;
  const Clock& clock_;
  const Sink sink_;
  const ProgressOptions options_;
  const bool enabled_;
  const Clock::TimePoint start_;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> files_ = 0;
  std::atomic<Clock::TimePoint> next_draw_;
  std::mutex mutex_;  // guards what follows, and the sink
  bool drawn_ = false;
  bool finished_ = false;
  InterruptCleanup cleanup_;  // last: it uses all of the above
};

}  // namespace postflight
