#pragma once

#include "flight/diagnosis/verdict.h"
#include "flight/model/job.h"

namespace postflight {

// Says what happened to a job, who is at fault and what that rests on. The
// same job gives the same verdict, whatever the order of its files.
Verdict diagnose(const Job& job);

}  // namespace postflight
