#pragma once

#include <span>
#include <string>

#include "flight/model/id.h"

namespace postflight {

// Sorted ranks as ranges with strides: "0-15,32-1016:8"; "none" if empty.
std::string rank_set_text(std::span<const Rank> ranks);

}  // namespace postflight
