#pragma once

#include <string>

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "flight/model/job_loader.h"
#include "synthetic/synthetic_job.h"

namespace postflight::synthetic {

// A simulated job, and its dumps as loaded.
struct LoadedJob {
  SyntheticJob made;
  Job job;
};

inline SyntheticJob made_job(const JobOptions& options) {
  Result<SyntheticJob> made = make_job(options);
  if (!made)
    ADD_FAILURE() << made.error().message();
  return *std::move(made);
}

inline LoadedJob load(const JobOptions& options) {
  SyntheticJob made = made_job(options);
  Result<TemporaryFolder> folder = TemporaryFolder::create();
  EXPECT_TRUE(folder);
  const Result<> written = made.write(folder->path(), /*with_truth=*/false);
  EXPECT_TRUE(written) << written.error().message();
  const std::string path = folder->path();
  Result<Job> job = load_job(std::span(&path, 1), {}, {});
  if (!job)
    ADD_FAILURE() << job.error().message();
  return {std::move(made), *std::move(job)};
}

}  // namespace postflight::synthetic
