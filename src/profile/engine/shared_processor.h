#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace postflight {

// Has the calling thread run on the processor that another thread uses.
//
// A thread that runs while its stack is read can call and return dozens of
// times within one copy: a function that does nothing takes 50 ns, a copy some
// microseconds. Comparing two copies does not help much: two chains of calls
// that take turns look equal every few hundred nanoseconds, and so do mixtures
// of them. But two threads on one processor never run at the same time. While
// we have the processor that the other was last on, it stands still, and the
// kernel's count of its turns tells whether it still did at the end.
//
// Nothing is stopped by that: the scheduler shares the processor as among any
// threads, for the microseconds that a copy takes, and whatever happens to us,
// the other goes on.
class SharedProcessor {
 public:
  SharedProcessor() = default;
  SharedProcessor(const SharedProcessor&) = delete;
  SharedProcessor& operator=(const SharedProcessor&) = delete;
  // Lets the thread run where it could before.
  ~SharedProcessor() { leave(); }

  // Whether the calling thread is on `processor`, which it goes to if it may.
  // One object is for one thread.
  bool join(int processor);
  // The calling thread may run anywhere again.
  void leave();

 private:
  // What the kernel takes at most, 8,192 processors.
  using Processors = std::array<std::uint64_t, 128>;

  Processors before_ = {};
  std::size_t before_bytes_ = 0;
  pid_t tid_ = 0;
  int joined_ = -1;
};

}  // namespace postflight
