#pragma once

#include <string_view>

#include "base/output.h"
#include "base/terminal.h"
#include "flight/diagnosis/verdict.h"
#include "flight/model/job.h"
#include "stacks/snapshot.h"

namespace postflight {

struct TraceReportOptions {
  bool all = false;   // show all rows and findings, and cut nothing
  bool why = false;   // show the proofs
  bool dumps = true;  // false: there are only logs
  // The user's arguments as a shell reads them, for the next command: those
  // that `trace` takes, and those that `entries` takes.
  std::string_view trace_words = {};
  std::string_view entries_words = {};
  // What processes of the job do now; nullptr: not known.
  const StackSnapshot* stacks = nullptr;
};

// The verdict on the first line, then the evidence, then the next step. It fits
// one screen, whatever the number of ranks.
void write_trace(const Job& job, const Verdict& verdict,
                 const TraceReportOptions& options, const Terminal& terminal,
                 Output& out);

// The last operations of one rank, what it waits for and who waits for it.
void write_rank_report(const Job& job, const Verdict& verdict, Rank rank,
                       const TraceReportOptions& options,
                       const Terminal& terminal, Output& out);

// The last operation of each member of one group.
void write_group_report(const Job& job, const Verdict& verdict, GroupId group,
                        const TraceReportOptions& options,
                        const Terminal& terminal, Output& out);

// The same facts as JSON.
void write_trace_json(const Job& job, const Verdict& verdict, Output& out,
                      const StackSnapshot* stacks = nullptr);
// Only where the ranks at fault ran, as JSON.
void write_nodes_json(const Job& job, const Verdict& verdict, Output& out);

}  // namespace postflight
