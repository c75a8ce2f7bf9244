#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace postflight {

// How many terminal columns escaped text takes: two for each East Asian wide
// character or emoji, none for a combining character, one for any other.
std::size_t display_width(std::string_view escaped);

// `escaped` if it fits in `width` columns, else its beginning followed by
// `ellipsis`, which together fit.
std::string cut_to_width(std::string_view escaped, std::size_t width,
                         std::string_view ellipsis = "…");

}  // namespace postflight
