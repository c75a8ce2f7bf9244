#pragma once

#include <cstddef>
#include <string>

namespace postflight {

// The options that commands have in common.
struct CommonOptions {
  bool json = false;
  bool quiet = false;
  std::size_t threads = 0;     // where a command takes --threads
  std::string color = "auto";  // or "always", "never"
  bool force = false;          // where a command writes files
};

}  // namespace postflight
