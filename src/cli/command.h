#pragma once

#include "cli/arguments/command.h"
#include "cli/session.h"

namespace postflight {

Command ckpt_command();
Command doctor_command();
Command fr_trace_command();
Command entries_command();
Command pickle_command();
Command profile_command();
Command profile_report_command();
Command profile_top_command();
Command stacks_command();
Command stream_command();
Command trace_command();
Command version_command();
// Help on a command of `program`, which has to outlive it.
Command help_command(const Command& program);
// Man page and completions of `program`, which has to outlive it.
Command generate_command(const Command& program);

// Runs the program; returns its exit code.
int run_program(int argc, char** argv);

}  // namespace postflight
