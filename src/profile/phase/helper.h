#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace postflight {

// Python programs announce their phases through a module, postflight_phase,
// which launched programs can import without installing it:
//
//   from postflight_phase import phase
//   with phase("load"): ...
//
// It also announces torch's compile phases, by registering a profiler class
// with torch's profiler hook. Writes the module to `folder` and returns the
// environment variables (NAME=value) that make it available.
Result<std::vector<std::string>> install_phase_helper(
    const std::filesystem::path& folder, const Environment& environment);

}  // namespace postflight
