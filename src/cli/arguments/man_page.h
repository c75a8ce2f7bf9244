#pragma once

#include <string>

#include "cli/arguments/declared.h"

namespace postflight {

// The program's man page in roff, made from what its commands declare, so that
// it says what --help says.
std::string man_page(const DeclaredCommand& program);

}  // namespace postflight
