#pragma once

// Part of the agent: what happens when a thread becomes another program.
//
// A signal of ours that is pending then would end that program, which has no
// handler for it. So the functions of the exec family are stood in for: they
// first see to it that nothing is pending or can come.

namespace postflight {

// Looks the C library's functions up; nothing is looked up later, when a
// vfork() may have taken place.
void set_up_exec_guard();

// The agent's part. Sends no more signals to the calling thread and takes those
// that are pending; false if there is nothing to resume.
bool pause_sampling();
void resume_sampling();

}  // namespace postflight
