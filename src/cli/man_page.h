#pragma once

#include <string>

namespace CLI {
class App;
}

namespace postflight {

// The program's man page in roff, made from what its commands declare, so that
// it says what --help says.
std::string man_page(const CLI::App& program);

}  // namespace postflight
