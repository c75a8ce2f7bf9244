#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace postflight {

// The memory of such pieces, for the next time: to get it anew for each tensor
// costs more than to copy them.
using PieceRoom = std::array<std::vector<std::byte>, 4>;

// Runs `produce` on a thread of its own and `consume` on this one, with a few
// pieces between them, so that reading and writing overlap. An error of either
// ends both.
using PieceSink = std::function<Result<>(Bytes piece)>;
Result<> overlap(const std::function<Result<>(const PieceSink& sink)>& produce,
                 const PieceSink& consume, PieceRoom& room);

}  // namespace postflight
