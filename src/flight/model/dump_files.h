#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "base/finding.h"

namespace postflight {

// The files below some paths, in an order that depends on their names only.
struct DumpFiles {
  std::vector<std::string> files;
  std::vector<Finding> findings;  // folders and files that can't be read
};

// Takes files as they are, folders with all that lies below them, and patterns
// (dumps/rank_*). Symbolic links are followed, each folder once. An error if a
// path that was given does not exist or can't be read.
Result<DumpFiles> find_dump_files(std::span<const std::string> paths);

// The prefixes under which recorders write their dumps when nobody tells them
// another: those of the variables that are set, then the built-in ones, newest
// first. A rank's dump is the prefix and the rank.
std::vector<std::string> default_dump_prefixes(const Environment& environment);

}  // namespace postflight
