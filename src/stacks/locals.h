#pragma once

#include <cstdint>
#include <vector>

#include "profile/process/memory.h"
#include "profile/python/layout.h"
#include "profile/python/stack.h"
#include "stacks/snapshot.h"

namespace postflight {

// The local variables of a frame, arguments first, as repr() would show plain
// values, cut. They are read from the memory of the process: none of its code
// runs, so an object with a repr() of its own is shown by its type. Variables
// without a value are left out.
std::vector<LocalVariable> read_locals(const Memory& memory,
                                       const PythonLayout& layout,
                                       const RawFrame& frame);

}  // namespace postflight
