#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace postflight {

// The word that `typed` was most likely meant to be; nothing if none is near.
std::optional<std::string> suggestion(std::string_view typed,
                                      std::span<const std::string> words);

}  // namespace postflight
