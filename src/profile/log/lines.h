#pragma once

#include <cstdint>
#include <vector>

#include "profile/log/profile.h"

namespace postflight {

// A line of Python and what was done on its behalf: by itself, and by native
// functions that it called.
struct LineTime {
  std::uint32_t function = 0;  // texts
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint64_t samples = 0;
  std::uint64_t ns = 0;
  std::uint64_t system_ns = 0;       // of ns, in the kernel
  std::uint64_t interpreter_ns = 0;  // in the interpreter's own code
  std::uint64_t library_ns = 0;      // in other native code
  std::uint64_t gil_ns = 0;          // with the GIL, where that is known
  std::uint64_t waiting_ns = 0;
};

// The lines of the innermost Python frames, most time first.
std::vector<LineTime> lines_of(const Profile& profile);

}  // namespace postflight
