#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace postflight {

// Reads back what the commands have declared, for man page and completions.

struct Description {
  std::string sentence;
  std::string examples;  // a line each, indented
};

Description description_of(const CLI::App& app);
// The commands directly below the program or a command.
std::vector<const CLI::App*> visible_commands(const CLI::App& app);
// Those that can be run: "ckpt ls", not "ckpt".
std::vector<const CLI::App*> runnable_commands(const CLI::App& program);
// How it is called, without the program's name: "ckpt ls".
std::string command_line_name(const CLI::App& app);
// "-q", "--quiet"; for a positional its name.
std::vector<std::string> option_names(const CLI::Option& option);
// "auto|always|never"; empty for a flag or a positional.
std::string option_value(const CLI::Option& option);

}  // namespace postflight
