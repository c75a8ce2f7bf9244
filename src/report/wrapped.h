#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace postflight {

// Wraps `text`, which begins at `column`, to `width` columns, indenting all
// lines but the first. A longer word gets its own line.
std::string wrapped(std::string_view text, std::size_t column,
                    std::size_t width, std::size_t indent);

}  // namespace postflight
