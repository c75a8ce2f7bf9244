#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace postflight {

// Writes the agent, which is embedded in this program, to `folder`, where the
// phases are, too. Returns the environment variables (NAME=value) that load it
// into a program.
Result<std::vector<std::string>> install_agent(
    const std::filesystem::path& folder, std::chrono::nanoseconds interval,
    const Environment& environment);

}  // namespace postflight
