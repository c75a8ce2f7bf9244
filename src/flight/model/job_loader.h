#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/context.h"
#include "base/error.h"
#include "flight/model/job.h"
#include "flight/model/rank_names.h"

namespace postflight {

struct LoadOptions {
  RankNameOptions names = {};
  // Called from the calling thread: once when the number of files is known, and
  // after each file.
  std::function<void(std::uint64_t files)> on_start = {};
  std::function<void(std::uint64_t bytes)> on_file = {};
};

// Reads all dumps below `paths` (see find_dump_files) into one job. Files that
// are not dumps or cannot be read are skipped and listed in the job. Fails only
// if a path cannot be opened or no file is a dump.
Result<Job> load_job(std::span<const std::string> paths,
                     const LoadOptions& options, const Context& context);

// The same for a list of files; the job may be empty.
Result<Job> load_files(std::span<const std::string> files,
                       const LoadOptions& options, const Context& context);

}  // namespace postflight
