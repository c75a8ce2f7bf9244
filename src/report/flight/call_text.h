#pragma once

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

}  // namespace postflight
