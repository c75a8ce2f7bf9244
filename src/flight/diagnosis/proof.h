#pragma once

#include <vector>

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// For each rank at fault, the smallest change of what it did that lets
// everybody go on, and who then does. Empty for a verdict that accuses nobody,
// or only says who is slow. Of many ranks, the first 16.
std::vector<Proof> prove(const Case& facts, const Verdict& verdict);

// Whether each of them is proven to be at fault; true if there are none.
bool is_proven(const Verdict& verdict);

}  // namespace postflight
