#pragma once

#include <span>
#include <string>

#include "flight/model/tables.h"

namespace postflight {

// Parts of entries as Python prints them.

// "[[8], [4, 2]]"
std::string sizes_text(const Tables& tables, SizesId sizes);
// "['Float', 'Float']"
std::string dtypes_text(const Tables& tables, DtypesId dtypes);
// "{'Float'}", sorted; "set()" if empty.
std::string dtype_set_text(const Tables& tables, DtypesId dtypes);
// "{0, 1}"; "set()" if empty.
std::string rank_set_python(std::span<const Rank> ranks);
// "[{'name': 'f', 'filename': 'a.py', 'line': 3}]"
std::string frames_text(const Tables& tables, StackId stack);

}  // namespace postflight
