#pragma once

#include <csignal>

// Part of the agent: keeps its signal out of the program's sight.
//
// A program that blocks all signals, as many libraries do in their threads,
// would not be sampled; one that waits for all signals or reads them from a
// descriptor would get the agent's. So the functions of the C library that do
// this are replaced: they leave the agent's signal out of the sets they are
// given, and remember for each thread whether the program has blocked it. A
// signal of that number that somebody else has sent is kept until the program
// unblocks it or waits for it.

namespace postflight {

// From here on `signal` is hidden; unblocks it in the calling thread.
void hide_signal(int signal);
// In a new thread: it inherits what its creator saw.
bool signal_looks_blocked();
void set_signal_looks_blocked(bool blocked);
// For the handler: a signal that somebody else has sent. True if the program
// has blocked it, so that it is kept.
bool keep_signal(const siginfo_t& info);
// Before exec, which inherits the mask, and after it has failed.
void really_block_signal();
void really_unblock_signal();

}  // namespace postflight
