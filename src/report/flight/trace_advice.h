#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flight/diagnosis/verdict.h"

namespace postflight {

// What to do next, as lines: what the kind of verdict asks for, and the command
// to go on with. `source` is what the user gave to this one.
std::vector<std::string> advice(const Verdict& verdict,
                                std::string_view source);

}  // namespace postflight
