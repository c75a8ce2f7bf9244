#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace postflight {

// The whole of a file under tests/data.
std::string sample(std::string_view name);

// Names of all files under tests/data that begin as a zip archive, sorted.
std::vector<std::string> zip_samples();

}  // namespace postflight
