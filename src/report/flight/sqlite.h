#pragma once

#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "flight/matching/collective_table.h"

namespace postflight {

// Writes all of a job into an SQLite database with the tables and views of
// docs/flight-database.md. It takes the place of `target` when it is complete.
Result<> write_flight_sqlite(const Matching& matching,
                             const CollectiveTable& table,
                             const std::filesystem::path& target,
                             Existing existing = Existing::kRefuse);

}  // namespace postflight
