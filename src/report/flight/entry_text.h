#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "flight/model/job.h"

namespace postflight {

// "Float, Long": the names as recorded. Not escaped.
std::string dtype_names(const Tables& tables, DtypesId dtypes);

// The usual short name, "f32" for "Float"; unknown names are returned
// unchanged.
std::string_view short_dtype(std::string_view recorded);

// "f32[8, 16] i64[4]". Not escaped.
std::string tensors_text(const Tables& tables, SizesId sizes, DtypesId dtypes);

// "all_reduce f32[64]", "send 0->1 f32[20]": the operation without its backend,
// and its inputs, or its outputs if it has no inputs. Not escaped.
std::string call_text(const Job& job, const Call& call);

// The functions below return escaped text.

// "dp_0", or the name of a group without a description.
std::string group_label(const Job& job, const Group& group);
// The rank of the job that is rank `place` of the group; `place` itself if the
// group's members are not known so far.
std::int32_t job_rank(const Job& job, GroupId group, std::int32_t place);
// "all_reduce #1482", "send 4->6" with ranks of the job
std::string operation_label(const Job& job, const Entry& entry);
// "f32[4096, 4096]", or "f32[4, 4] and 2 more" for several tensors.
std::string tensors_label(const Job& job, const Call& call);
// "forward (train.py:26)"; empty without a stack.
std::string place_label(const Job& job, const Entry& entry);
// "2026-11-15 05:51:50 UTC"; empty for 0.
std::string time_label(std::int64_t nanoseconds);

// " on node1", or nothing if the host is not known.
std::string host_label(const Job& job, Rank rank);

}  // namespace postflight
