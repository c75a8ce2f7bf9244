#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.h"

namespace postflight {

// One line of /proc/PID/maps.
struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the file
  bool executable = false;
  std::string path = {};  // empty: not a file

  bool operator==(const Mapping&) const = default;
};

// Parses the text of /proc/PID/maps; invalid lines are skipped.
std::vector<Mapping> parse_mappings(std::string_view text);

Result<std::vector<Mapping>> process_mappings(pid_t pid);

// The path of a file that `pid` has mapped, as seen by this process, also if
// `pid` runs in a container.
std::string path_inside(pid_t pid, const Mapping& mapping);

}  // namespace postflight
