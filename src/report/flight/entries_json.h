#pragma once

#include "base/output.h"
#include "flight/model/entry_filter.h"
#include "flight/model/job.h"

namespace postflight {

// Each entry that the filter takes as an object on a line of its own, in order
// of ranks and records, and then each finding.
void write_entries_json(const Job& job, const EntryFilter& filter, Output& out);

}  // namespace postflight
