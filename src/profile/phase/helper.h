#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace postflight {

// Python programs say which phase they are in through a module,
// postflight_phase, that a launched program finds without installing it:
//
//   from postflight_phase import phase
//   with phase("load"): ...
//
// It also makes torch's compile phases known, by giving torch's profiler hook
// a profiler class. Writes the module into `folder` and returns what to put
// into the program's environment.
Result<std::vector<std::string>> install_phase_helper(
    const std::filesystem::path& folder, const Environment& environment);

}  // namespace postflight
