#pragma once

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// Adds findings besides the verdict: missing dumps, other mismatches, time-outs,
// silent ranks, differing versions, rings that are too short, and the findings
// of the job's files.
void add_findings(const Case& facts, Verdict& verdict);

}  // namespace postflight
