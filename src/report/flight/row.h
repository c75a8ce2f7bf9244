#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "base/terminal.h"

namespace postflight {

constexpr std::size_t kUnlimitedWidth = std::numeric_limits<std::size_t>::max();

// How wide rows may be: a pipe takes everything, and so does who asks for all.
std::size_t row_width(const Terminal& terminal, bool all);

// As many parts, two columns apart, as fit behind `column`. The first `needed`
// parts, up to the line of code, are never cut but continue on the next line.
std::string fitted(const std::vector<std::string>& parts, std::size_t needed,
                   std::size_t column, std::size_t width,
                   const Terminal& terminal);

}  // namespace postflight
