#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>

// Part of the agent: reads memory that may not be there, in a signal handler.
//
// A handler may strike between any two instructions, also while a call is being
// set up and the new frame's links are not written yet: what it follows then
// may lead nowhere. Asking the kernel for each frame would be safe and cost a
// microsecond each. So frames are read directly, by one function whose faults
// are caught: our handler of SIGSEGV and SIGBUS sees that the fault happened
// there and has the function return false.
//
// Programs have handlers of their own for these signals (Python's faulthandler,
// torch, CUDA). Theirs are kept behind ours, by standing in for sigaction() and
// signal(): who asks sees only what the program set, and every fault that is
// not ours goes there, or has its default effect.

namespace postflight {

// What is read of a frame, at these offsets from its address.
struct FrameOffsets {
  std::uint32_t code = 0;
  std::uint32_t instruction = 0;
  std::uint32_t previous = 0;
  std::uint32_t flags = 0;  // two bytes
  std::uint32_t size = 0;   // of all that
};
// Of each frame: code, instruction, flags.
constexpr std::size_t kFrameWords = 3;

// Puts our handlers before the program's.
void set_up_fault_guard();
// In a forked child. Not so after a vfork(): its memory is still the parent's,
// and what it does about signals is none of our business.
void take_over_fault_guard();
// Whether reads are guarded on a thread that was interrupted with these signals
// blocked. Looks now and then whether somebody has replaced our handlers
// without asking the C library.
bool fault_guard_holds(const sigset_t& blocked);

// False if there is no such memory. Only while the guard holds.
bool guarded_word(std::uint64_t address, std::uint64_t& word);
// Writes kFrameWords of each of up to `most` frames, beginning at `frame`, and
// returns the end of what it wrote. `rest` is where the next frame should be: 0
// where there is none, else it could not be read, or there were enough. Only
// while the guard holds.
std::uint64_t* guarded_walk(std::uint64_t frame, const FrameOffsets& offsets,
                            std::uint64_t* out, std::uint64_t most,
                            std::uint64_t& rest);
// Reads by asking the kernel.
bool checked_copy(void* to, std::uint64_t from, std::uint64_t size);

}  // namespace postflight
