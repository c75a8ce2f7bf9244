#include "cli/job_source.h"

#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/environment.h"
#include "flight/model/default_places.h"
#include "flight/model/dump_files.h"
#include "flight/model/job_loader.h"

namespace postflight {
namespace {

// Patterns for the places where dumps are by default, of those that have any.
Result<std::vector<std::string>> default_paths() {
  const std::vector<std::string> prefixes =
      default_dump_prefixes(process_environment());
  for (const std::string& prefix : prefixes) {
    const std::vector<std::string> pattern = {prefix + "*"};
    if (const Result<DumpFiles> found = find_dump_files(pattern);
        found && !found->files.empty())
      return pattern;
  }
  return fail(ErrorKind::kUsage,
              "no dumps in the usual places ({}*); give the folder they are in",
              fmt::join(prefixes, "*, "));
}

}  // namespace

void add_job_source(CommandArguments& arguments, JobSource& source) {
  arguments.positional("DIR", source.paths,
                       "Folders, files or patterns with the dumps of one job");
  arguments.option("-p,--prefix", source.prefix, "TEXT",
                   "What stands before the rank in the names of the dumps");
  arguments.option("--rank-pattern", source.rank_pattern, "REGEX",
                   "A regular expression whose first group is the rank");
  arguments.option("--threads", source.threads, "N",
                   "How many files to read at once (all processors)");
}

Result<Job> load_job(JobSource& source, const Session& session) {
  if (source.paths.empty())
    source.paths = TRY(default_paths());
  LoadOptions options;
  if (!source.prefix.empty())
    options.names.prefix = source.prefix;
  if (!source.rank_pattern.empty())
    options.names.pattern = source.rank_pattern;
  std::unique_ptr<Progress> progress;
  options.on_start = [&](std::uint64_t files) {
    progress = session.progress({.label = "Reading", .total_files = files});
  };
  options.on_file = [&](std::uint64_t bytes) { progress->advance(bytes, 1); };
  return load_job(source.paths, options, {.threads = source.threads});
}

}  // namespace postflight
