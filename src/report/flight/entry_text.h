#pragma once

#include <string>

#include "flight/model/job.h"

namespace postflight {

// Entries in words; all of it escaped.

// "dp_0", or the name of a group without a description.
std::string group_label(const Job& job, const Group& group);
// "all_reduce #1482", "send 0->1"
std::string operation_label(const Job& job, const Entry& entry);
// "f32[4096, 4096]", of several tensors the first and how many more.
std::string tensors_label(const Job& job, const Call& call);
// "forward (train.py:26)", or nothing without a stack.
std::string place_label(const Job& job, const Entry& entry);
// "2026-11-15 05:51:50 UTC"; nothing for 0.
std::string time_label(std::int64_t nanoseconds);

}  // namespace postflight
