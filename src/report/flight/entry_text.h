#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "flight/model/job.h"

namespace postflight {

// "Float, Long": the names that the recorder wrote. Not yet escaped.
std::string dtype_names(const Tables& tables, DtypesId dtypes);

// "f32" of "Float", as people write it; other names as they are.
std::string_view short_dtype(std::string_view recorded);

// "f32[8, 16] i64[4]". Not yet escaped.
std::string tensors_text(const Tables& tables, SizesId sizes, DtypesId dtypes);

// "all_reduce f32[64]", "send 0->1 f32[20]": the operation without its backend
// and what went into it, or came out where nothing goes in. Not yet escaped.
std::string call_text(const Job& job, const Call& call);

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
