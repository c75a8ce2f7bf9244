#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/arguments/command.h"

namespace postflight {

// Spells out abbreviated long options of fr-trace, whose declaration is
// `command`: Python's argparse accepts any unambiguous prefix. torchfrtrace's
// own options have precedence, so that its abbreviations stay unambiguous.
// Fails if a word fits several of those.
Result<> spell_out_fr_trace_options(const Command& command,
                                    std::span<std::string> arguments);

// The arguments of the program; if it was started as torchfrtrace, with
// fr-trace before them.
std::vector<std::string> arguments_with_command(int argc, char** argv);

}  // namespace postflight
