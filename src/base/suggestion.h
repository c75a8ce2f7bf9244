#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace postflight {

// Levenshtein's.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The word that was most likely meant; nothing if none is close to `typed`.
std::optional<std::string> suggestion(std::string_view typed,
                                      std::span<const std::string> words);

}  // namespace postflight
