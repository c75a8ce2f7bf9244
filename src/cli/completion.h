#pragma once

#include <string>

namespace CLI {
class App;
}

namespace postflight {

// Completions for commands, options and their values, made from what the
// commands declare. Files complete as each shell completes them.
std::string bash_completion(const CLI::App& program);
std::string zsh_completion(const CLI::App& program);
std::string fish_completion(const CLI::App& program);

}  // namespace postflight
