#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "stacks/snapshot.h"

namespace postflight {

// Reads stacks that a program has saved:
// - `py-spy dump`, as text or JSON;
// - Python's faulthandler, also amid other lines of a log;
// - torch's debug server: its files stacks_*.txt and pyspy_dump_*.txt, and the
//   pages /stacks and /pyspy_dump;
// - gdb's `bt`, `thread apply all bt` and `py-bt`;
// - `postflight stacks --json`.
// Ranks come from headings ("=== Rank 3: ... ===", "[rank3]: ") or from `name`,
// the name of the file ("stacks_rank3.txt"). Fails if there is no stack in it.
Result<std::vector<ProcessStacks>> read_saved_stacks(Bytes bytes,
                                                     std::string_view name,
                                                     const Limits& limits = {});

// The number after the last "rank" in a file's name; -1 if there is none.
std::int32_t rank_in_name(std::string_view name);

}  // namespace postflight
