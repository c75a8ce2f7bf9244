#pragma once

#include "stream/extension/registry.h"

#include <filesystem>
#include <string>

struct postflight_transform;

namespace postflight {

// Adds one transform, which outlives the registry and what it made. `origin` is
// shown where the transforms are listed.
Result<> add_transform(const postflight_transform& transform,
                       const std::string& origin, ExtensionRegistry& registry);

// Loads a shared library that implements include/postflight_transform.h and
// adds its transforms to `registry`. This runs the library's code, and it stays
// loaded until the process exits.
Result<> load_plugin(const std::filesystem::path& path,
                     ExtensionRegistry& registry);

}  // namespace postflight
