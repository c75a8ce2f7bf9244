#pragma once

#include <cstdint>

// Part of the agent: perf events that leave no file descriptor in the program.
//
// An event lives as long as its descriptor or a mapping of it. The mapping,
// one page, does not show among the program's descriptors, cannot be closed by
// mistake, and is not inherited by a forked child. The descriptor exists only
// while the event is opened.

namespace postflight {

// Sends the calling thread `signal` each time it has used `period_ns` of CPU
// time while it executes user code: the kernel would interrupt blocking system
// calls otherwise. Returns the mapping, or null with an errno.
void* open_event(std::uint64_t period_ns, int signal, int& error);
void close_event(void* event);
// Whether events send SIGTRAP reliably.
bool events_trap();
// The code of a SIGTRAP that an event has sent.
constexpr int kTrapOfEvent = 6;  // TRAP_PERF

}  // namespace postflight
