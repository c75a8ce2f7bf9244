#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "cli/arguments/command.h"
#include "cli/session.h"
#include "flight/model/job_loader.h"

namespace postflight {

// Where a command takes a job's dumps from.
struct JobSource {
  std::vector<std::string> paths;
  std::string prefix;
  std::string rank_pattern;
};

// Declares DIR..., --prefix, --rank-pattern and --threads.
void add_job_source(CommandArguments& arguments, JobSource& source);

// The paths given or, without any, those of the recorders' default places.
Result<std::vector<std::string>> dump_paths(const JobSource& source);

// The same options as a shell reads them, for a command to go on with: a folder
// or a glob in place of all the files that a shell made of it.
std::string source_words(const JobSource& source);

LoadOptions load_options(const JobSource& source);

// The progress line while dumps are read. The session has to outlive it.
class LoadProgress {
 public:
  explicit LoadProgress(const Session& session) : session_(session) {}

  // The same options, followed by this progress line, which has to outlive
  // them.
  LoadOptions follow(LoadOptions options);
  void finish() { progress_.reset(); }

 private:
  const Session& session_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace postflight
