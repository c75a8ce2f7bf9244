#pragma once

#include <string>
#include <vector>

#include "base/environment.h"

namespace postflight {

// The prefixes under which recorders write their dumps when nobody tells them
// another: those of the variables that are set, then the built-in ones, newest
// first. A rank's dump is the prefix and the rank.
std::vector<std::string> default_dump_prefixes(const Environment& environment);

}  // namespace postflight
