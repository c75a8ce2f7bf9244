#pragma once

#include <cstddef>

#include "base/limits.h"

namespace postflight {

class Log;

// What every stage of one run shares. It is passed by const reference from the
// command or the API down to loading, opening, diagnosing and reading; nothing
// below creates its own limits or thread count. The log outlives the context.
struct Context {
  Limits limits = {};
  std::size_t threads = 0;  // 0: one for each processor
  Log* log = nullptr;       // nullptr: messages are dropped
};

}  // namespace postflight
