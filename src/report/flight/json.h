#pragma once

#include "base/output.h"
#include "flight/matching/collective_table.h"
#include "flight/model/job.h"

namespace postflight {

// All of a job as one object, "schema": "postflight.fr-trace/1": the tables of
// the flight database, joined by the same numbers.
void write_flight_json(const Job& job, const CollectiveTable& table,
                       Output& out);

}  // namespace postflight
