#pragma once

// Part of the agent: keeps it out of programs started by exec that it does not
// belong in.
//
// A signal that is pending during exec would kill the new program, which has no
// handler for it. So the agent replaces the functions of the exec family by
// ones that first stop the signals and consume any that are pending.
//
// The loader complains on stderr about a library in LD_PRELOAD that it cannot
// load: because the profile is over and its folder gone, because the process
// has changed its user or its mounts, or because the program is not a 64-bit
// one. So the new functions leave the agent out of LD_PRELOAD then.

namespace postflight {

// Looks up the C library's functions early, as that is not possible after a
// vfork(). `library` is the agent's own path, and must stay.
void set_up_exec_guard(const char* library);

// Defined by the agent. Stops the signals of the calling thread and consumes
// those that are pending; false if there is nothing to resume.
bool pause_sampling();
void resume_sampling();
// Defined by the agent: the process ends without running destructors.
void end_process();

}  // namespace postflight
