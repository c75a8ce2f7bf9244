#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/arguments/command.h"

namespace postflight {

// No line of help is wider, whatever the terminal: the documents show it, too.
inline constexpr std::size_t kHelpWidth = 80;

// What --help prints: sentence, examples, usage, parameters and commands.
std::string help_text(const Command& command);

// One indented line for each example with what it does beside it, or below one
// that is too long.
std::string examples_text(const std::vector<Example>& examples);

}  // namespace postflight
