#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// The words of lists of hosts, told apart by their form.

// Without the quotes around it, if it has any.
std::string_view unquoted(std::string_view text);
// Without what follows a # at the start or behind a space.
std::string_view without_comment(std::string_view line);

// A number up to what a rank can be.
std::optional<std::uint32_t> count_in(std::string_view text);

// Words between spaces, or between commas outside brackets if there are none.
std::vector<std::string_view> fields_of(std::string_view line);

// "5", "0-7" or "0-7,16-23".
bool is_rank_set(std::string_view text);

// A host's name, perhaps with brackets or several of them.
bool is_host_expression(std::string_view text);

// The count in "x8", "ntasks-per-node=8" or "8(x4),2"; nothing if a word has
// another form.
std::optional<std::string_view> task_counts(std::string_view word);

}  // namespace postflight
