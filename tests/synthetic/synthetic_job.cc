#include "synthetic/synthetic_job.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <system_error>

#include <fmt/format.h>

namespace postflight::synthetic {
namespace {

std::size_t records_of(const Actions& actions) {
  std::size_t count = 0;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::kCollective)
      count += 1;
    else if (action.kind == ActionKind::kCoalesced)
      count += 2;
    else if (action.kind == ActionKind::kTransfers)
      count += action.transfer_count + (action.batched ? 1U : 0U);
  }
  return count;
}

// Steps until each rank has made that many records.
int steps_for(std::size_t records, const Schedule& schedule,
              const Topology& topology) {
  std::size_t fewest = records;
  for (int rank = 0; rank < topology.world(); ++rank)
    fewest =
        std::min(fewest, records_of(schedule.actions(
                             rank, topology.place(rank).stage, /*step=*/1)));
  fewest = std::max<std::size_t>(fewest, 1);
  return static_cast<int>((records + fewest - 1) / fewest) + 1;
}

// What the busiest rank records in a step, and a bit.
std::size_t short_ring(const Schedule& schedule, const Topology& topology) {
  std::size_t most = 0;
  for (int rank = 0; rank < topology.world(); ++rank)
    most = std::max(most, records_of(schedule.actions(
                              rank, topology.place(rank).stage, /*step=*/1)));
  return most * 7 / 5 + 8;
}

bool contains(const std::vector<int>& values, int value) {
  return std::ranges::find(values, value) != values.end();
}

Result<> write_file(const std::filesystem::path& path,
                    const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file)
    return fail(ErrorKind::kIo, "{}: can't be written", path.string());
  return {};
}

}  // namespace

Result<SyntheticJob> make_job(const JobOptions& options) {
  if (options.versions.empty() || options.ranks_per_node < 1 ||
      options.schedule.steps < 1 || options.schedule.microbatches < 1 ||
      options.schedule.layers < 1)
    return fail(ErrorKind::kUsage,
                "a job has at least one step, microbatch, layer, version and "
                "rank a node");
  const Topology topology = TRY(make_topology(options.layout, options.names));
  ScheduleOptions plan = options.schedule;
  plan.gloo = options.backend == "gloo";
  if (options.fill_ring_with > 0)
    plan.steps =
        steps_for(options.fill_ring_with,
                  Schedule(plan, options.layout, options.seed), topology);
  SyntheticJob job(options, topology,
                   Schedule(plan, options.layout, options.seed));
  if (options.short_ring)
    job.options_.ring = short_ring(job.schedule_, topology);
  Random random(options.seed ^ 0x5eed);
  const Planned planned = TRY(
      plan_fault({.kind = options.fault,
                  .rank = options.culprit,
                  .whole_node = options.whole_node,
                  .ranks_per_node = options.ranks_per_node,
                  .timing = options.timing,
                  .gloo = plan.gloo,
                  .full_history = !options.only_active && !options.short_ring},
                 topology, job.schedule_, random));
  job.simulated_ = simulate(job.schedule_, topology,
                            {.disagreement = planned.disagreement,
                             .blocking = plan.gloo,
                             .seed = options.seed + 77});
  job.truth_ = planned.truth;
  job.truth_.no_dump = planned.dead;
  std::vector<int> involved = planned.involved;
  involved.insert(involved.end(), job.truth_.culprits.begin(),
                  job.truth_.culprits.end());
  job.lose_dumps(involved, random);
  return job;
}

// Which dumps went wrong, and what that leaves unsaid.
void SyntheticJob::lose_dumps(const std::vector<int>& involved,
                              Random& random) {
  std::set<int> taken(involved.begin(), involved.end());
  const auto lose = [&](int count, std::vector<int>& into) {
    for (int attempt = 0; attempt < 50 * count && count > 0; ++attempt) {
      const int rank = static_cast<int>(random.below(topology_.places.size()));
      if (taken.insert(rank).second) {
        into.push_back(rank);
        --count;
      }
    }
    std::ranges::sort(into);
  };
  std::vector<int> missing;
  lose(options_.missing, missing);
  lose(options_.empty, truth_.empty_dumps);
  lose(options_.cut, truth_.cut_dumps);
  truth_.doubtful.assign(taken.begin(), taken.end());
  std::erase_if(truth_.doubtful,
                [&](int rank) { return contains(involved, rank); });
  truth_.no_dump.insert(truth_.no_dump.end(), missing.begin(), missing.end());
  std::ranges::sort(truth_.no_dump);
  if (truth_.kind == "healthy") {
    truth_.accept.push_back("inconclusive");
    if (options_.running)
      truth_.accept.push_back("all_joined_stuck");
  }
}

bool SyntheticJob::has_dump(int rank) const {
  return !contains(truth_.no_dump, rank);
}

std::string SyntheticJob::file_name(int rank) const {
  const std::string name =
      fmt::format("{}_trace_rank_{}", options_.backend, rank);
  return options_.node_folders
             ? fmt::format("node{:03}/{}", rank / options_.ranks_per_node, name)
             : name;
}

RecorderOptions SyntheticJob::recorder_of(int rank) const {
  const int node = rank / options_.ranks_per_node;
  Random of_rank(options_.seed * 1'000'003 + static_cast<std::uint64_t>(rank));
  Random of_node(options_.seed * 999'983 + static_cast<std::uint64_t>(node));
  RecorderOptions recorder{.backend = options_.backend,
                           .ring = options_.ring,
                           .timing = options_.timing,
                           .only_active = options_.only_active,
                           .stacks = options_.stacks};
  recorder.version =
      options_
          .versions[static_cast<std::size_t>(rank) % options_.versions.size()];
  if (options_.clock_skew_ms > 0)
    recorder.clock_offset =
        of_node.between(-options_.clock_skew_ms, options_.clock_skew_ms) *
        500'000;
  // The ranks are asked one after the other.
  const std::int64_t apart = of_rank.between(0, 2'000'000'000);
  if (options_.running)
    recorder.asked_at = simulated_.end / 4 * 3 + apart / 200;
  else if (simulated_.hung)
    recorder.asked_at =
        simulated_.end + recorder.timeout_ms * 1'000'000 + apart;
  else
    recorder.asked_at = simulated_.end + 20'000'000 + apart / 10;
  return recorder;
}

std::string SyntheticJob::dump(int rank) const {
  if (contains(truth_.empty_dumps, rank))
    return "";
  const RecorderOptions recorder = recorder_of(rank);
  const Shown shown =
      look(rank, simulated_.records[static_cast<std::size_t>(rank)], topology_,
           recorder);
  std::string bytes = options_.json
                          ? json_dump(shown, schedule_, topology_, recorder)
                          : pickle_dump(shown, schedule_, topology_, recorder);
  if (contains(truth_.cut_dumps, rank)) {
    Random random(options_.seed + 31 * static_cast<std::uint64_t>(rank));
    bytes.resize(bytes.size() *
                 static_cast<std::size_t>(random.between(40, 95)) / 100);
  }
  return bytes;
}

std::string SyntheticJob::truth_text() const {
  return truth_json(truth_, world(), options_.backend,
                    std::string(fault_name(options_.fault)));
}

Result<> SyntheticJob::write(const std::filesystem::path& folder,
                             bool with_truth) const {
  for (int rank = 0; rank < world(); ++rank) {
    if (!has_dump(rank))
      continue;
    const std::filesystem::path path = folder / file_name(rank);
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error)
      return fail(ErrorKind::kIo, "{}: {}", path.parent_path().string(),
                  error.message());
    TRY(write_file(path, dump(rank)));
  }
  if (with_truth)
    TRY(write_file(folder / "truth.json", truth_text()));
  return {};
}

}  // namespace postflight::synthetic
