#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace postflight {

// Moves the calling thread to the processor that another thread is on.
//
// A thread that runs while its stack is copied can call and return dozens of
// times during one copy: an empty function takes 50 ns, a copy some
// microseconds. Comparing two copies does not help much: a program that
// alternates between two chains of calls looks the same every few hundred
// nanoseconds, and so do mixtures of the two. But two threads on one processor
// never run at the same time. While we run on the processor that the other
// thread was last on, it stands still, and the kernel's count of its turns on a
// processor tells afterwards whether it did all the time.
//
// This stops nothing: the scheduler shares the processor between the two as
// between any threads, for the microseconds of a copy, and whatever happens to
// us, the other thread continues.
class SharedProcessor {
 public:
  SharedProcessor() = default;
  SharedProcessor(const SharedProcessor&) = delete;
  SharedProcessor& operator=(const SharedProcessor&) = delete;
  // Restores the affinity that the thread had before.
  ~SharedProcessor() { leave(); }

  // Moves the calling thread to `processor`; false if it may not run there. Use
  // one object per thread.
  bool join(int processor);
  // Restores the affinity of the thread that joined.
  void leave();

 private:
  // The most that the kernel supports: 8,192 processors.
  using Processors = std::array<std::uint64_t, 128>;

  Processors before_ = {};
  std::size_t before_bytes_ = 0;
  pid_t tid_ = 0;
  int joined_ = -1;
};

}  // namespace postflight
