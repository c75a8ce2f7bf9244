#pragma once

#include <string>

#include "base/error.h"
#include "flight/classic/analysis.h"

namespace postflight {

// torchfrtrace's database as it pickles it: (types, Database), for Python with
// torch to load. Unlike in its own, the tracebacks are there and the calls
// join them. pass_check, the group's ids and the names and sizes of the calls
// are as torchfrtrace has them: docs/differences.md.
Result<std::string> classic_database(const Job& job,
                                     const ClassicAnalysis& analysis);

}  // namespace postflight
