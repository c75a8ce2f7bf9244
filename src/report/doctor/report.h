#pragma once

#include "base/output.h"
#include "base/terminal.h"
#include "doctor/examination.h"

namespace postflight {

// What is wrong, each with what to do, and the settings; with `all`, also those
// that are not set.
void write_examination(const Examination& examination, bool all,
                       const Terminal& terminal, Output& out);

// postflight.doctor/1
void write_examination_json(const Examination& examination, Output& out);

}  // namespace postflight
