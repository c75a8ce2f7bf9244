#pragma once

#include <cstdint>

#include "profile/agent/sample_ring.h"

// Part of the agent: what CPython says of the calling thread. Of its functions
// only those are called that read a word.

namespace postflight {

class Interpreter {
 public:
  // False if this program is not Python.
  bool find();

  // The thread's Python state; null if it has none.
  void* thread_state(const RingLayout& layout, bool guarded) const;
  // For a record of the thread with this state.
  std::uint32_t flags(const void* state, const RingLayout& layout,
                      bool guarded) const;
  // For a record with this instruction.
  std::uint32_t place_flags(std::uint64_t instruction) const;

 private:
  // PyGILState_GetThisThreadState and PyThreadState_GetUnchecked: the state
  // that this thread began with, and the one that somebody runs with now. The
  // second is that of a sub-interpreter, too, but up to 3.11 perhaps another
  // thread's: that of whoever holds the GIL.
  void* (*first_state_)() = nullptr;
  void* (*current_state_)() = nullptr;
  int (*is_ending_)() = nullptr;  // Py_IsFinalizing
  // The interpreter's code, in its library or program.
  std::uint64_t start_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace postflight
