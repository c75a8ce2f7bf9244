#pragma once

#include <string>

#include "cli/arguments/command.h"

namespace postflight {

// The program's man page in roff. It says what --help says.
std::string man_page(const Command& program);

}  // namespace postflight
