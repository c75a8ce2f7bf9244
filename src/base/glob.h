#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace postflight {

// Whether all of `text` matches a pattern, with the syntax of glob(7): `*`
// matches any text, slashes and dots included, `?` one byte, `[a-z]` or
// `[!a-z]` one byte of a set. `[[]` or `\[` matches a bracket, `\*` a star. An
// unclosed bracket is literal. Time is at most proportional to the product of
// both lengths.
bool glob_matches(std::string_view pattern, std::string_view text);

// The path itself if it exists; else, if it is a pattern, the sorted paths that
// match it as in a shell: `*` and `?` match no slash and no leading dot, and a
// leading ~ is the home folder. Fails if there are none.
Result<std::vector<std::string>> expand_path(const std::string& path);

}  // namespace postflight
