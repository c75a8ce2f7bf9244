#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/limits.h"
#include "flight/model/job.h"
#include "flight/model/rank_names.h"

namespace postflight {

struct LoadOptions {
  RankNameOptions names = {};
  std::size_t threads = 0;  // 0: one for each processor
  Limits limits = {};
  // Called when the number of files is known, and after each of them; the
  // second from the calling thread.
  std::function<void(std::uint64_t files)> on_start = {};
  std::function<void(std::uint64_t bytes)> on_file = {};
};

// Reads all dumps that lie below `paths` (see find_dump_files) into one job.
// What is no dump, or can't be read, is skipped and listed; an error only if
// the paths can't be looked at, or no dump was among the files.
Result<Job> load_job(std::span<const std::string> paths,
                     const LoadOptions& options = {});

// The same, of any files given; the job may then be empty.
Result<Job> load_files(std::span<const std::string> files,
                       const LoadOptions& options = {});

}  // namespace postflight
