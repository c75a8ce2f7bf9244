#pragma once

#include <functional>

#include "base/bytes.h"
#include "base/error.h"

namespace postflight {

// Runs `produce` on a thread of its own and `consume` on this one, with a few
// pieces between them, so that reading and writing overlap. An error of either
// ends both.
using PieceSink = std::function<Result<>(Bytes piece)>;
Result<> overlap(const std::function<Result<>(const PieceSink& sink)>& produce,
                 const PieceSink& consume);

}  // namespace postflight
