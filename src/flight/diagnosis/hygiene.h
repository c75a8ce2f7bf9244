#pragma once

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// Adds what else is worth knowing: what the job's files were like, dumps that
// are missing, time-outs, versions, rings that are too short. R9, R11, R12.
void add_findings(const Case& facts, Verdict& verdict);

}  // namespace postflight
