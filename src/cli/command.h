#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments/command_arguments.h"
#include "cli/arguments/declared.h"
#include "cli/arguments/help_text.h"
#include "cli/session.h"

namespace postflight {

// Runs a command whose options are parsed. The program prints an error and
// exits with kCouldNotLook.
using CommandRun = std::function<Result<Exit>(Session&)>;

// One command of the program. `declare` adds its options to `arguments` and
// returns what runs it once they are parsed; what it returns may own those
// options. A command with commands of its own (`ckpt ls`) may declare
// nothing itself.
struct Command {
  std::string_view name;
  std::string_view sentence;
  std::vector<Example> examples;
  std::function<CommandRun(CommandArguments& arguments)> declare;
  bool hidden = false;
  std::vector<Command> commands = {};
};

Command ckpt_command();
Command fr_trace_command();
Command entries_command();
Command pickle_command();
Command profile_command();
Command profile_report_command();
Command stream_command();
Command trace_command();
Command version_command();
// Man page and completions, made from what all commands declare.
Command generate_command(std::function<DeclaredCommand()> program);

// Runs the program; returns its exit code.
int run_program(int argc, char** argv);

}  // namespace postflight
