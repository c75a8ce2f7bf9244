#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/log/profile.h"

namespace postflight {

struct ImportTime {
  std::string module;
  std::uint64_t ns = 0;
};

// A profile as the author of a program sees it. What the standard library and
// torch do on behalf of a function is time of that function, an import is one
// frame, whatever runs in it, and threads that only wait are left out.
struct FoldedProfile {
  Profile profile = {};
  std::vector<ImportTime> imports = {};  // by the outermost module, most first
  std::size_t idle_threads = 0;          // left out
};

// What the frame of an import is called.
constexpr const char* kImportFrame = "import";

// For each thread, whether it is the first of the program that was profiled;
// there is one for each rank.
std::vector<bool> main_threads(const Profile& profile);

FoldedProfile fold(const Profile& profile);

}  // namespace postflight
