#include "cli/job_source.h"

#include <cstdint>

#include "api/trace.h"
#include "base/environment.h"

namespace postflight {

void add_job_source(CommandArguments& arguments, JobSource& source) {
  arguments.positional("DIR", source.paths,
                       "Folders, files or globs: the dumps of one job");
  arguments.option("-p,--prefix", source.prefix, "TEXT",
                   "The text before the rank in the names of the dumps");
  arguments.option("--rank-pattern", source.rank_pattern, "REGEX",
                   "Regular expression whose first group is the rank in a "
                   "file name");
  arguments.threads("N", "How many threads to use (one per processor)");
}

Result<std::vector<std::string>> dump_paths(const JobSource& source) {
  if (source.paths.empty())
    return default_dumps(process_environment());
  return source.paths;
}

LoadOptions load_options(const JobSource& source) {
  LoadOptions options;
  if (!source.prefix.empty())
    options.names.prefix = source.prefix;
  if (!source.rank_pattern.empty())
    options.names.pattern = source.rank_pattern;
  return options;
}

LoadOptions LoadProgress::follow(LoadOptions options) {
  options.on_start = [this](std::uint64_t files) {
    progress_ = session_.progress({.label = "Reading", .total_files = files});
  };
  options.on_file = [this](std::uint64_t bytes) {
    progress_->advance(bytes, 1);
  };
  return options;
}

}  // namespace postflight
