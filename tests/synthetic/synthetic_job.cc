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
  FaultOptions fault = {
      .kind = options.fault,
      .rank = options.culprit,
      .whole_node = options.whole_node,
      .ranks_per_node = options.ranks_per_node,
      .timing = options.timing,
      .gloo = plan.gloo,
      .full_history = !options.only_active && !options.short_ring};
  const Planned planned =
      TRY(plan_fault(fault, topology, job.schedule_, random));
  std::vector<Planned> more;
  fault.rank = -1;
  for (const FaultKind kind : options.more_faults) {
    fault.kind = kind;
    more.push_back(TRY(plan_fault(fault, topology, job.schedule_, random)));
  }
  job.simulated_ = simulate(job.schedule_, topology,
                            {.disagreement = planned.disagreement,
                             .blocking = plan.gloo,
                             .compute_scale = options.compute_scale,
                             .operation_scale = options.operation_scale,
                             .uneven_percent = options.uneven_percent,
                             .seed = options.seed + 77});
  job.truth_ = planned.truth;
  job.truth_.no_dump = planned.dead;
  job.add_second_faults(more);
  std::vector<int> involved = planned.involved;
  involved.insert(involved.end(), job.truth_.culprits.begin(),
                  job.truth_.culprits.end());
  for (const Answer& answer : job.truth_.also)
    involved.insert(involved.end(), answer.culprits.begin(),
                    answer.culprits.end());
  job.choose_early(involved, random);
  job.lose_dumps(involved, random);
  return job;
}

// Of several faults, those that struck are true: of one kind all together,
// else each of them is a right answer.
void SyntheticJob::add_second_faults(const std::vector<Planned>& planned) {
  const auto struck = [&](const Planned& fault) {
    return std::ranges::all_of(fault.truth.culprits, [&](int rank) {
      return simulated_.struck[static_cast<std::size_t>(rank)] != kNever;
    });
  };
  std::vector<Truth> truths;
  if (truth_.culprits.empty() ||
      std::ranges::all_of(truth_.culprits, [&](int r) {
        return simulated_.struck[static_cast<std::size_t>(r)] != kNever;
      }))
    truths.push_back(truth_);
  for (const Planned& fault : planned)
    if (struck(fault) && !fault.truth.culprits.empty())
      truths.push_back(fault.truth);
  if (planned.empty() || truths.empty())
    return;
  const std::vector<int> no_dump = truth_.no_dump;
  truth_ = truths[0];
  truth_.no_dump = no_dump;
  for (std::size_t i = 1; i < truths.size(); ++i) {
    if (truths[i].kind == truth_.kind) {
      truth_.culprits.insert(truth_.culprits.end(), truths[i].culprits.begin(),
                             truths[i].culprits.end());
      truth_.accept.insert(truth_.accept.end(), truths[i].accept.begin(),
                           truths[i].accept.end());
    } else {
      truth_.also.push_back({truths[i].kind, truths[i].culprits});
    }
  }
  std::ranges::sort(truth_.culprits);
  const auto repeated = std::ranges::unique(truth_.culprits);
  truth_.culprits.erase(repeated.begin(), repeated.end());
}

void SyntheticJob::choose_early(const std::vector<int>& involved,
                                Random& random) {
  // Before the others stopped, nothing shows that a device has.
  if (options_.culprits_early && options_.fault == FaultKind::kDeviceStalled)
    truth_.also.insert(truth_.also.end(),
                       {{"all_joined_stuck", {}}, {"inconclusive", {}}});
  if (options_.culprits_early)
    for (const int culprit : truth_.culprits)
      if (simulated_.struck[static_cast<std::size_t>(culprit)] != kNever)
        early_.insert(culprit);
  for (int chosen = 0, tried = 0; chosen < options_.early && tried < 100;
       ++tried) {
    const int rank = static_cast<int>(random.below(topology_.places.size()));
    if (!contains(involved, rank) && early_.insert(rank).second)
      ++chosen;
  }
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
    if (options_.running) {
      truth_.kind = "in_progress";
      truth_.accept.push_back("healthy");
    }
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
  // A watchdog ends what has waited for longer than that.
  if (options_.running)
    recorder.timeout_ms =
        std::max(recorder.timeout_ms, simulated_.end / 1'000'000);
  recorder.asked_at = dump_time(rank, recorder);
  return recorder;
}

// The ranks are asked one after the other.
std::int64_t SyntheticJob::dump_time(int rank,
                                     const RecorderOptions& recorder) const {
  Random of_rank(options_.seed * 1'000'003 + static_cast<std::uint64_t>(rank));
  if (options_.running) {
    Random of_job(options_.seed * 31'337);
    const std::int64_t window =
        std::min(options_.window_ms * 1'000'000, simulated_.end / 2);
    const std::int64_t begin =
        of_job.between(simulated_.end / 4, simulated_.end - window);
    return begin + of_rank.between(0, window);
  }
  if (early_.contains(rank)) {
    const std::int64_t struck =
        simulated_.struck[static_cast<std::size_t>(rank)];
    return struck != kNever
               ? struck + 1'000'000
               : of_rank.between(simulated_.end / 3, simulated_.end);
  }
  const std::int64_t apart = of_rank.between(0, 2'000'000'000);
  if (simulated_.hung)
    return simulated_.end + recorder.timeout_ms * 1'000'000 + apart;
  return simulated_.end + 20'000'000 + apart / 10;
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
