#pragma once

#include <string_view>

namespace postflight {

// Whether all of `text` matches a pattern, with the syntax of glob(7): `*`
// matches any text, slashes and dots included, `?` one byte, `[a-z]` or
// `[!a-z]` one byte of a set. `[[]` or `\[` matches a bracket, `\*` a star. An
// unclosed bracket is literal. Time is at most proportional to the product of
// both lengths.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace postflight
