#pragma once

#include <vector>

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// How each rank of the world stands, given the verdict.
std::vector<RankStanding> stand(const Case& facts, const Verdict& verdict);

}  // namespace postflight
