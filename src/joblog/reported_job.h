#pragma once

#include "flight/model/job.h"
#include "joblog/job_log.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace postflight {

// A job as its logs report it: for each rank and group the last operation that
// is done, and those that are not, so far as a line tells them. Of a group, the
// logs rarely say who is in it.
struct ReportedJob {
  Job job;
  // By group: all of its members are known, and no others.
  std::vector<char> whole;
  // By group: the numbers in the logs contradict each other.
  std::vector<char> doubtful;
  // The line that tells the state of a rank in a group, an index in
  // JobLog::progress.
  std::map<std::pair<Rank, GroupId>, std::size_t> sources;
  std::vector<Rank> waiting;  // ranks with something that is not done, sorted
  // Lines have the rank in some group only, and it was taken for that in the
  // job.
  bool guessed = false;
};

// The group of all ranks is the first.
ReportedJob make_reported_job(const JobLog& log);

}  // namespace postflight
