#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>

// Part of the agent: reads memory that may be unmapped, in a signal handler.
//
// A handler may run between any two instructions, also while a call is being
// set up and the new frame's links are not written yet, so it may follow a wild
// pointer. Reading each frame through the kernel would be safe but take a
// microsecond each. So frames are read directly, by code whose faults are
// caught: our handler of SIGSEGV and SIGBUS sees that the fault happened there
// and makes the read return false.
//
// Programs have their own handlers for these signals (Python's faulthandler,
// torch, CUDA). They are kept behind ours by replacing sigaction() and
// signal(): callers see only what the program has set, and every fault outside
// our code is passed to the program's handler, or has its default effect.
//
// The same holds for the agent's own signal, and for SIGIO, which the kernel
// sends instead of it when too many signals are queued.

namespace postflight {

// What is read of a frame, at these offsets from its address.
struct FrameOffsets {
  std::uint32_t code = 0;
  std::uint32_t instruction = 0;
  std::uint32_t previous = 0;
  std::uint32_t flags = 0;  // two bytes
  std::uint32_t size = 0;   // to the end of the last of them
};
// Of each frame: code, instruction, flags.
constexpr std::size_t kFrameWords = 3;

using SignalHandler = void (*)(int, siginfo_t*, void*);

// Installs our handlers in front of the program's: `handler` is that of the
// agent's own signal.
void set_up_fault_guard(int signal, SignalHandler handler);
// For a signal that is not ours: calls the program's handler as the kernel
// would.
void pass_on(int signal, siginfo_t* info, void* context);
// An ignored signal stays ignored in a program that is started by exec, a
// handled one does not: lets those that the program ignores be so really, and
// back.
void hand_over_ignored_signals();
void take_back_ignored_signals();
// For a forked child. Not for one of vfork(), which shares its parent's memory.
void take_over_fault_guard();
// Whether reads are guarded on a thread that was interrupted with these signals
// blocked. Checks now and then that nobody has replaced our handlers without
// going through the C library.
bool fault_guard_holds(const sigset_t& blocked);

// False if the address is unmapped. Only while the guard is active.
bool guarded_word(std::uint64_t address, std::uint64_t& word);
// Writes kFrameWords of each of up to `most` frames, beginning at `frame`, and
// returns the end of what it wrote. `rest` is the address of the next frame: 0
// if there is none; otherwise it was unreadable, or `most` was reached. Only
// while the guard is active.
std::uint64_t* guarded_walk(std::uint64_t frame, const FrameOffsets& offsets,
                            std::uint64_t* out, std::uint64_t most,
                            std::uint64_t& rest);
// Reads through the kernel.
bool checked_copy(void* to, std::uint64_t from, std::uint64_t size);

}  // namespace postflight
