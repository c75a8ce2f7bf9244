#pragma once

#include <span>
#include <string>
#include <string_view>

#include "flight/model/id.h"

namespace postflight {

// What torchfrtrace calls a group: its name and CPython's hash of the frozen
// set of its members, in decimal. `members` are in order, each once.
std::string classic_guid(std::string_view name, std::span<const Rank> members);

}  // namespace postflight
