#pragma once

#include <string>

#include "cli/arguments/command.h"

namespace postflight {

// Scripts that complete commands, options and the values of options, for each
// shell; other words complete as names of files.
std::string bash_completion(const Command& program);
std::string zsh_completion(const Command& program);
std::string fish_completion(const Command& program);

}  // namespace postflight
