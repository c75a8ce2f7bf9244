#pragma once

#include "base/output.h"
#include "base/terminal.h"
#include "flight/diagnosis/verdict.h"
#include "flight/model/job.h"

namespace postflight {

// How all ranks stand, those alike in one row, those at fault first. If that is
// too much for a screen and not `all` is wanted, ranks that do the same in
// different groups share a row, too, and what is still left over is counted.
void write_standing_rows(const Job& job, const Verdict& verdict, bool all,
                         const Terminal& terminal, Output& out);

}  // namespace postflight
