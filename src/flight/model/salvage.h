#pragma once

#include <optional>
#include <span>
#include <vector>

#include "pickle/builder.h"
#include "pickle/value.h"

namespace postflight {

// What was there of a dump whose end is missing, as the values of a smaller
// dump: the keys before the break, and of the entries those that were whole.
// `unfinished` is what Machine::unfinished() returns. Nothing if the break came
// before anything useful.
std::optional<Value> salvage(
    const std::vector<std::span<const Value>>& unfinished, Builder& builder);

}  // namespace postflight
