#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace postflight {

// Spells out long options of fr-trace that are abbreviated: Python's argparse
// takes any beginning that fits one option only. torchfrtrace's own options
// come first, so that what was enough for it stays enough. An error if a word
// fits several of them.
Result<> spell_out_fr_trace_options(std::span<std::string> arguments);

// The arguments of the program, with the command put in if the program was
// called by the name of the one it stands in for.
std::vector<std::string> arguments_with_command(int argc, char** argv);

}  // namespace postflight
