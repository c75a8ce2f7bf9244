#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace postflight {

// What the commands have declared, read back for man page and completions.

struct DeclaredOption {
  std::vector<std::string> names;  // "-q", "--quiet"; a positional's one name
  std::string value;  // "auto|always|never"; none of a flag or a positional
  std::string help;
  bool positional = false;
};

struct DeclaredCommand {
  std::string name;
  std::string called;  // with the command it belongs to: "ckpt ls"
  std::string sentence;
  std::string examples;  // a line each, indented
  std::vector<DeclaredOption> options;
  std::vector<DeclaredCommand> commands;  // without the hidden ones
};

// The program, or a command of it, with all that is below.
DeclaredCommand declared_by(const CLI::App& app);
// Those that can be run: "ckpt ls", not "ckpt". Valid while `program` lives.
std::vector<const DeclaredCommand*> runnable_commands(
    const DeclaredCommand& program);
// How it is called, without the program's name: "ckpt ls".
std::string called(const CLI::App& app);

}  // namespace postflight
