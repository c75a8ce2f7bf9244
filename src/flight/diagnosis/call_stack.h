#pragma once

#include <optional>
#include <string>

#include "flight/model/job.h"

namespace postflight {

// The innermost frame that is the user's own: not torch's, not another
// package's, not Python's. The innermost of all if there is no such; nothing
// for the empty stack. Valid while the job is.
const Frame* own_frame(const Job& job, StackId stack);

// "forward (model.py:26)", with the file's last part; not escaped.
std::string frame_text(const Job& job, const Frame& frame);

// Where two stacks part, seen from the outside: the last frame that both were
// in, at different lines or with different callees.
struct Parting {
  const Frame* here = nullptr;  // nullptr: this one ends there
  const Frame* there = nullptr;
};
// Nothing if they are the same, or one of them is empty.
std::optional<Parting> part(const Job& job, StackId here, StackId there);

}  // namespace postflight
