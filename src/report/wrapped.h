#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace postflight {

// Breaks `text`, which begins at `column`, into lines of `width` columns, all
// but the first indented. A word that is longer stands on its own.
std::string wrapped(std::string_view text, std::size_t column,
                    std::size_t width, std::size_t indent);

}  // namespace postflight
