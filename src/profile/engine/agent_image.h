#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "profile/engine/agent_arena.h"

namespace postflight {

// Writes the agent, which is embedded in this program, to `folder`. Returns the
// environment variables (NAME=value) that load it into a program, where it
// joins `arena`. An error if libraries cannot be loaded from there.
Result<std::vector<std::string>> install_agent(
    const std::filesystem::path& folder, const AgentArena& arena,
    const Environment& environment);

}  // namespace postflight
