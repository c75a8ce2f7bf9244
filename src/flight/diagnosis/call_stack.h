#pragma once

#include <optional>
#include <string>

#include "flight/model/job.h"

namespace postflight {

// The innermost frame of the user's own code, not of torch, another package or
// Python itself; the innermost frame if there is none, nullptr for the empty
// stack. Valid while the job lives.
const Frame* own_frame(const Job& job, StackId stack);

// Whether it is in the user's own code.
bool is_own_frame(const Job& job, const Frame& frame);

// "forward (model.py:26)", with the base name of the file; not escaped.
std::string frame_text(const Job& job, const Frame& frame);

// The outermost frames in which two stacks differ; nullptr for a stack that
// ends before that.
struct StackDivergence {
  const Frame* first = nullptr;
  const Frame* second = nullptr;
};
// Nothing if the stacks are equal or one of them is empty.
std::optional<StackDivergence> stack_divergence(const Job& job, StackId first,
                                                StackId second);

}  // namespace postflight
