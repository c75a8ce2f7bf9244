#pragma once

#include "stream/extension/registry.h"

#include <filesystem>

namespace postflight {

// Loads a shared library that implements include/postflight_transform.h and
// adds its transforms to `registry`. This runs the library's code, and it stays
// loaded until the process exits.
Result<> load_plugin(const std::filesystem::path& path,
                     ExtensionRegistry& registry);

}  // namespace postflight
