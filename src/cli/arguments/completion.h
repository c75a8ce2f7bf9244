#pragma once

#include <string>

#include "cli/arguments/declared.h"

namespace postflight {

// Completions for commands, options and their values, made from what the
// commands declare. Files complete as each shell completes them.
std::string bash_completion(const DeclaredCommand& program);
std::string zsh_completion(const DeclaredCommand& program);
std::string fish_completion(const DeclaredCommand& program);

}  // namespace postflight
