#pragma once

#include "base/output.h"
#include "base/terminal.h"
#include "json/writer.h"
#include "stacks/snapshot.h"

namespace postflight {

struct StacksReportOptions {
  bool all = false;  // of several processes, all threads
};

// One process: every thread. Several: one tree of their main threads, the odd
// ones first.
void write_stacks(const StackSnapshot& snapshot,
                  const StacksReportOptions& options, const Terminal& terminal,
                  Output& out);

// postflight.stacks/1
void write_stacks_json(const StackSnapshot& snapshot, Output& out);

// The members of one process, in an object that is open.
void write_process_stacks(const ProcessStacks& process, JsonWriter& json);

}  // namespace postflight
