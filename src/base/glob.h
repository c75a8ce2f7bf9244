#pragma once

#include <string_view>

namespace postflight {

// Whether all of `text` matches a pattern of the shell's kind: `*` stands for
// any text, `?` for one byte, `[a-z]` or `[!a-z]` for one of a set. No
// character is special in `text`. A bracket that is not closed means itself.
// Takes time in proportion to the product of both lengths at most.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace postflight
