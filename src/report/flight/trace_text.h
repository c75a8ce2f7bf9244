#pragma once

#include <string_view>

#include "base/output.h"
#include "base/terminal.h"
#include "flight/diagnosis/verdict.h"
#include "flight/model/job.h"

namespace postflight {

struct TraceReportOptions {
  bool all = false;         // all rows and findings, however many
  std::string_view source;  // what the user gave, for the next command
};

// The verdict on the first line, the evidence under it, the next step last. One
// screen, whatever the number of ranks.
void write_trace(const Job& job, const Verdict& verdict,
                 const TraceReportOptions& options, const Terminal& terminal,
                 Output& out);

// What one rank did last, what it waits for and who waits for it.
void write_rank_story(const Job& job, const Verdict& verdict, Rank rank,
                      const Terminal& terminal, Output& out);

// How the members of one group stand.
void write_group_story(const Job& job, const Verdict& verdict, GroupId group,
                       const Terminal& terminal, Output& out);

// The same facts for a program.
void write_trace_json(const Job& job, const Verdict& verdict, Output& out);

}  // namespace postflight
