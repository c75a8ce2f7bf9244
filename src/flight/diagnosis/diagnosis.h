#pragma once

#include "base/context.h"
#include "flight/diagnosis/verdict.h"
#include "flight/matching/matching.h"

namespace postflight {

// Says what happened to a job, who is at fault and what that rests on. The
// same job gives the same verdict, whatever the order of its files.
Verdict diagnose(const Matching& matching, const Context& context = {});

}  // namespace postflight
