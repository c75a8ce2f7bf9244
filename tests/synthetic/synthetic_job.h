#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "synthetic/fault.h"
#include "synthetic/recorder.h"
#include "synthetic/schedule.h"
#include "synthetic/simulation.h"
#include "synthetic/topology.h"
#include "synthetic/truth.h"

namespace postflight::synthetic {

// A training job and how it was recorded. The same options give the same
// bytes.
struct JobOptions {
  Layout layout = {.tensor = 2, .pipeline = 2, .data = 2};
  GroupNames names = GroupNames::kIndexed;
  ScheduleOptions schedule = {};
  int ranks_per_node = 8;

  std::string backend = "nccl";
  std::vector<std::string> versions = {"2.10"};  // rank by rank, in turn
  std::size_t ring = 2000;
  bool short_ring = false;  // instead: it holds little more than one step
  // So many steps that every rank's ring is full; 0: as the schedule says.
  std::size_t fill_ring_with = 0;
  bool timing = false;
  bool only_active = false;
  bool stacks = true;
  bool json = false;
  bool node_folders = false;       // node003/nccl_trace_rank_24
  std::int64_t clock_skew_ms = 0;  // at most, between nodes
  // How many times longer computing and communicating take, and by how much one
  // rank's work may exceed another's.
  std::int64_t compute_scale = 1;
  std::int64_t operation_scale = 1;
  int uneven_percent = 0;

  // When the ranks dump: while the job still runs, each at its own moment
  // within a window; otherwise after its end, or when its hang has timed out.
  bool running = false;
  std::int64_t window_ms = 10;
  // Ranks that dumped while the job still moved: innocent ones, and culprits
  // that raised an exception and dumped on their way out.
  int early = 0;
  bool culprits_early = false;

  // Dumps of innocent ranks that went wrong.
  int missing = 0;
  int empty = 0;
  int cut = 0;

  FaultKind fault = FaultKind::kHealthy;
  // More ranks with a fault of their own. Those that the first fault keeps from
  // getting there don't count.
  std::vector<FaultKind> more_faults = {};
  int culprit = -1;  // -1: any
  bool whole_node = false;

  std::uint64_t seed = 1;
};

// A job that ran; its dumps are made when they are asked for.
class SyntheticJob {
 public:
  const Truth& truth() const { return truth_; }
  const JobOptions& options() const { return options_; }
  const Topology& topology() const { return topology_; }
  const Schedule& schedule() const { return schedule_; }
  const Simulated& simulated() const { return simulated_; }
  int world() const { return topology_.world(); }

  bool has_dump(int rank) const;
  std::string file_name(int rank) const;
  std::string dump(int rank) const;
  std::string truth_text() const;

  // The dumps, and truth.json unless told otherwise.
  Result<> write(const std::filesystem::path& folder,
                 bool with_truth = true) const;

 private:
  friend Result<SyntheticJob> make_job(const JobOptions& options);
  SyntheticJob(JobOptions options, Topology topology, Schedule schedule)
      : options_(std::move(options)),
        topology_(std::move(topology)),
        schedule_(std::move(schedule)) {}

  RecorderOptions recorder_of(int rank) const;
  std::int64_t dump_time(int rank, const RecorderOptions& recorder) const;
  void add_second_faults(const std::vector<Planned>& planned);
  void choose_early(const std::vector<int>& involved, Random& random);
  void lose_dumps(const std::vector<int>& involved, Random& random);

  JobOptions options_;
  Topology topology_;
  Schedule schedule_;
  Simulated simulated_;
  Truth truth_;
  std::set<int> early_;
};

Result<SyntheticJob> make_job(const JobOptions& options);

}  // namespace postflight::synthetic
