#pragma once

#include "base/output.h"
#include "base/terminal.h"
#include "flight/model/entry_filter.h"
#include "report/flight/entries_grid.h"

namespace postflight {

// The entries of a job as tables, one a group, a row for each number and a
// column for all ranks that look the same. What does not fit beside each other
// comes below. With `stacks`, the distinct stacks follow, numbered.
void write_entries(const Matching& matching, const EntryFilter& filter,
                   const EntriesGridOptions& options, const Terminal& terminal,
                   Output& out);

}  // namespace postflight
