#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "base/finding.h"

namespace postflight {

// The files below some paths, sorted by name.
struct DumpFiles {
  std::vector<std::string> files;
  std::vector<Finding> findings;  // unreadable folders and files
};

// Finds all files of `paths`, which are files, folders (searched recursively)
// and globs (dumps/rank_*). Symbolic links are followed, each folder once.
// Fails if one of the paths does not exist or cannot be read.
Result<DumpFiles> find_dump_files(std::span<const std::string> paths);

// The path prefixes that recorders use by default: those in environment
// variables, then the built-in ones, newest first. A dump's path is the prefix
// followed by the rank.
std::vector<std::string> default_dump_prefixes(const Environment& environment);

}  // namespace postflight
