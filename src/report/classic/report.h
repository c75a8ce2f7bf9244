#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/output.h"
#include "flight/classic/analysis.h"

namespace postflight {

struct ClassicReportOptions {
  // Also what torchfrtrace logs for debugging, and the first operation that
  // is not finished.
  bool verbose = false;
};

// What torchfrtrace says of the collectives of a job, in its words and order.
void write_classic_report(const Job& job, const ClassicAnalysis& analysis,
                          const ClassicReportOptions& options, Output& out);

// What it says before: versions that differ, files that could not be read.
void write_classic_warnings(const Job& job, Output& out);

// Its tables, as -v prints them.
void write_classic_tables(const Job& job, const ClassicAnalysis& analysis,
                          Output& out);

// "0:default_pg"; the name alone if the description is "undefined".
std::string classic_group_text(const Job& job, const Call& call);

struct ClassicEntriesOptions {
  bool verbose = false;
  bool stacks = false;                   // a second table, of all stacks
  std::vector<std::int64_t> ranks = {};  // empty: all
  bool all_ranks = true;
  std::vector<std::string> groups = {};  // names or descriptions
  bool all_groups = true;
};

// The entries of the ranks side by side, as -j prints them.
void write_classic_entries(const Job& job, const ClassicEntriesOptions& options,
                           Output& out);

}  // namespace postflight
