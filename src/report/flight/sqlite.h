#pragma once

#include <filesystem>

#include "base/error.h"
#include "flight/matching/collective_table.h"
#include "flight/model/job.h"

namespace postflight {

// Writes all of a job into an SQLite database with the tables and views of
// docs/flight-database.md. It takes the place of `target` when it is complete.
Result<> write_flight_sqlite(const Job& job, const CollectiveTable& table,
                             const std::filesystem::path& target);
// The same, with the collectives matched here.
Result<> write_flight_sqlite(const Job& job,
                             const std::filesystem::path& target);

}  // namespace postflight
