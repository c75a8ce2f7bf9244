#pragma once

#include <functional>
#include <optional>
#include <string>

namespace postflight {

// Looks up an environment variable by name; tests supply their own.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// The environment of the process.
Environment process_environment();

}  // namespace postflight
