#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace postflight {

// The columns that escaped text takes on a terminal: two for East Asian wide
// characters and emoji, none for combining ones, one for all others.
std::size_t display_width(std::string_view escaped);

// The text if it fits in `width` columns, else its beginning and `ellipsis`,
// which together do.
std::string cut_to_width(std::string_view escaped, std::size_t width,
                         std::string_view ellipsis = "…");

}  // namespace postflight
