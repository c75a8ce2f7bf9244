#pragma once

#include <string_view>

namespace postflight {

// Whether all of `text` matches a shell-style pattern: `*` matches any text,
// `?` one byte, `[a-z]` or `[!a-z]` one byte of a set; `[[]` matches a bracket.
// No character of `text` is special. An unclosed bracket is literal. Time is at
// most proportional to the product of both lengths.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace postflight
