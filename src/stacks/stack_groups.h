#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stacks/snapshot.h"

namespace postflight {

// Processes whose main threads are at the same place: the same calls of the
// user's code, and the same innermost function.
struct StackGroup {
  std::vector<std::size_t> processes;  // indices, ascending
  std::vector<StackFrame> frames;      // of the first one
  bool odd = false;                    // most processes are elsewhere
};

// The odd ones first, then the others, smaller groups first. Processes without
// frames are left out.
std::vector<StackGroup> group_stacks(
    const std::vector<ProcessStacks>& processes);

// "rank 5", "ranks 0-4,6-7", "process 4711", "3 processes".
std::string processes_label(const std::vector<ProcessStacks>& processes,
                            const std::vector<std::size_t>& which);

// A call tree of main threads, the outermost frame first.
struct StackTreeLine {
  std::size_t depth = 0;  // how many branches led here
  StackFrame frame;
  // Who is there, where that differs from the line above; else empty.
  std::vector<std::size_t> processes = {};
};
// Branches with fewer processes come first.
std::vector<StackTreeLine> stack_tree(const std::vector<StackGroup>& groups);

}  // namespace postflight
