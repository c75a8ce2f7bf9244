#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/arguments/command.h"

namespace postflight {

// What a command line asks for.
struct Parsed {
  const Command* command = nullptr;
  // --help or --version, which takes the place of running the command; --help,
  // too, if the words stop before a command that can be run.
  const Parameter* answer = nullptr;
  // The words that are not options, as they were given.
  std::vector<std::string> positionals = {};
};

// Reads a command line, without the program's name, into the targets of the
// declared parameters. Options and positionals may be mixed; what follows "--"
// is positional. The error is one line that says what is wrong, what may have
// been meant, and where the help is. Valid while `program` lives.
Result<Parsed> parse(const Command& program,
                     std::span<const std::string> words);

}  // namespace postflight
