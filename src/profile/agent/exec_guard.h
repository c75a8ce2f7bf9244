#pragma once

// Part of the agent: keeps its signals out of programs started by exec.
//
// A signal that is pending during exec would kill the new program, which has no
// handler for it. So the agent replaces the functions of the exec family by
// ones that first stop the signals and consume any that are pending.

namespace postflight {

// Looks up the C library's functions early, as that is not possible after a
// vfork().
void set_up_exec_guard();

// Defined by the agent. Stops the signals of the calling thread and consumes
// those that are pending; false if there is nothing to resume.
bool pause_sampling();
void resume_sampling();

}  // namespace postflight
