#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"

namespace postflight {

struct DecompilerOptions {
  std::size_t text = 200;  // bytes of a string that are shown; 0: all
};

// Writes what a pickle does as Python statements in the order in which an
// unpickler would take them, a line at a time: imports, calls, containers as
// they grow. Nothing is run. All text of the pickle is escaped. Fails where the
// pickle breaks off, after the lines before that place.
Result<> decompile(Bytes pickle, const DecompilerOptions& options,
                   const Limits& limits,
                   const std::function<void(std::string_view)>& line);

}  // namespace postflight
