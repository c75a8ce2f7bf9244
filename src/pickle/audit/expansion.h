#pragma once

#include <cstdint>

#include "pickle/value.h"

namespace postflight {

// How many values there would be if each shared one were written out wherever
// it is referred to; at least that many, for what refers to itself. A few
// hundred bytes can have 2^60 (a "billion laughs"): loading them is cheap, but
// to print, compare, copy or hash them never ends.
std::uint64_t expanded_count(const Value& root);

}  // namespace postflight
