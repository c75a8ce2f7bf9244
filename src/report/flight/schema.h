#pragma once

namespace postflight {

// The flight database in SQL; docs/flight-database.md explains it.
extern const char* const kFlightTables;
// Made when all rows are there, which is much faster than keeping them up.
extern const char* const kFlightIndexes;
extern const char* const kFlightViews;

}  // namespace postflight
