#pragma once

#include "stream/extension/registry.h"

#include <filesystem>

namespace postflight {

// Loads a shared library that follows include/postflight_transform.h and adds
// its transforms to `registry`. The library's code runs, now and later, and it
// stays loaded until the process ends.
Result<> load_plugin(const std::filesystem::path& path,
                     ExtensionRegistry& registry);

}  // namespace postflight
