#pragma once

#include "flight/job.h"
#include "flight/verdict.h"

namespace postflight {

// Says what happened to a job, who is at fault and what that rests on. The
// same job gives the same verdict, whatever the order of its files.
Verdict diagnose(const Job& job);

}  // namespace postflight
