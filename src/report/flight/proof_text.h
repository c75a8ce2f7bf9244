#pragma once

#include "base/output.h"
#include "base/terminal.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// For `trace --why`: what a replay shows of the ranks at fault.
void write_proofs(const Verdict& verdict, const Terminal& terminal,
                  Output& out);

}  // namespace postflight
