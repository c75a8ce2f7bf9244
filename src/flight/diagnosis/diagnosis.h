#pragma once

#include "base/context.h"
#include "flight/diagnosis/verdict.h"
#include "flight/matching/matching.h"

namespace postflight {

// Determines what happened to a job, which ranks are at fault, and the
// evidence. The verdict does not depend on the order of the files.
Verdict diagnose(const Matching& matching, const Context& context = {});

}  // namespace postflight
