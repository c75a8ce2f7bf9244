#pragma once

// What the threads of processes do now, or did when another program saved it.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/context.h"
#include "base/error.h"
#include "stacks/snapshot.h"

namespace postflight {

struct StacksRequest {
  std::vector<std::int32_t> pids = {};
  std::vector<std::string> files = {};  // saved stacks; "-": standard input
  bool children = false;                // Python processes below the pids, too
  bool mine = false;                    // every Python process of this user
  bool native = false;
  bool locals = false;  // local variables of the innermost frames
  // If not 0, live processes are read again after this time, which tells those
  // that are stuck from those that are busy.
  std::chrono::nanoseconds again{0};
};

// Reads them all. What cannot be read is a finding, unless nothing can.
Result<StackSnapshot> collect_stacks(const StacksRequest& request,
                                     const Context& context);

// Only saved stacks, for the evidence about a job.
Result<StackSnapshot> read_stack_files(std::span<const std::string> files,
                                       const Context& context);

}  // namespace postflight
