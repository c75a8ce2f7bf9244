#pragma once

#include "base/output.h"
#include "flight/classic/analysis.h"
#include "flight/matching/collective_table.h"

namespace postflight {

// All of a job as one object, "schema": "postflight.fr-trace/1": the tables of
// the flight database, joined by the same numbers, and the problems that the
// text reports.
void write_flight_json(const Matching& matching, const CollectiveTable& table,
                       const ClassicAnalysis& analysis, Output& out);

}  // namespace postflight
