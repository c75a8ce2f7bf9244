#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"

namespace postflight {

// Writes the agent, which the program carries inside, into `folder`, where the
// phases are too, and returns what to put into the environment of a program
// that is to be started with it.
Result<std::vector<std::string>> install_agent(
    const std::filesystem::path& folder, std::chrono::nanoseconds interval,
    const Environment& environment);

}  // namespace postflight
