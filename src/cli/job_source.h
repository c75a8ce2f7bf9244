#pragma once

#include <string>
#include <vector>

#include "cli/arguments/command_arguments.h"
#include "cli/session.h"
#include "flight/model/job.h"

namespace postflight {

// Where a command takes a job's dumps from, with the same words everywhere.
struct JobSource {
  std::vector<std::string> paths;
  std::string prefix;
  std::string rank_pattern;
  std::size_t threads = 0;
};

// DIR..., --prefix, --rank-pattern and --threads.
void add_job_source(CommandArguments& arguments, JobSource& source);

// Reads the job, with a progress line. Without paths it looks where recorders
// write by default; an error then says where that was.
Result<Job> load_job(JobSource& source, const Session& session);

}  // namespace postflight
