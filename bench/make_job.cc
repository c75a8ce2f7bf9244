// Writes the dumps of a simulated job: make_job FOLDER [--option value]...

#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "synthetic/synthetic_job.h"

namespace postflight::synthetic {
namespace {

constexpr std::string_view kUsage = R"(usage: make_job FOLDER [OPTION VALUE]...

Simulates a training job and writes the flight-recorder dumps of its ranks, and
truth.json, into FOLDER ("-": the dump of rank 0 to standard output).

  --tp N --pp N --dp N --ep N --cp N   the layout; ep divides dp
  --names indexed|mesh|megatron        how groups are described
  --entries N        so many steps that each rank records N; the ring is as long
  --ring N           length of the ring (2000)
  --steps N --microbatches N --layers N
  --schedule 1f1b|gpipe
  --sequence-parallel 0|1  --fully-sharded 0|1  --coalesced 0|1  --sync 0|1
  --backend nccl|gloo|...
  --version 2.10[,2.7...]              rank by rank, in turn
  --timing 0|1  --only-active 0|1  --stacks 0|1  --json 0|1
  --ranks-per-node N  --node-folders 0|1  --clock-skew-ms N
  --running 0|1      dump in the middle of the run
  --missing N  --empty N  --cut N      dumps of innocent ranks that went wrong
  --fault NAME       healthy, never_joined, pipeline_stall, device_stalled,
                     all_joined_stuck, type_mismatch, size_mismatch,
                     dtype_mismatch, skipped, extra, order_swap, wrong_group,
                     p2p_unmatched, deadlock, no_dump, straggler
  --culprit RANK  --whole-node 0|1
  --seed N
)";

template <class Number>
bool read(std::string_view text, Number& into) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

bool read(std::string_view text, bool& into) {
  into = text == "1";
  return into || text == "0";
}

bool read(std::string_view text, FaultKind& into) {
  for (std::size_t i = 0; i < kFaultKinds; ++i)
    if (fault_name(static_cast<FaultKind>(i)) == text) {
      into = static_cast<FaultKind>(i);
      return true;
    }
  return false;
}

bool read(std::string_view text, GroupNames& into) {
  into = text == "mesh"       ? GroupNames::kMesh
         : text == "megatron" ? GroupNames::kMegatron
                              : GroupNames::kIndexed;
  return into != GroupNames::kIndexed || text == "indexed";
}

bool read(std::string_view text, std::vector<std::string>& into) {
  into.clear();
  while (true) {
    const std::size_t comma = text.find(',');
    into.emplace_back(text.substr(0, comma));
    if (comma == text.npos)
      return true;
    text.remove_prefix(comma + 1);
  }
}

bool set(JobOptions& job, std::string_view name, std::string_view value) {
  using Set = std::function<bool(std::string_view)>;
  const auto to = [](auto& into) {
    return Set([&into](std::string_view text) { return read(text, into); });
  };
  ScheduleOptions& schedule = job.schedule;
  const std::map<std::string_view, Set> all = {
      {"--tp", to(job.layout.tensor)},
      {"--pp", to(job.layout.pipeline)},
      {"--dp", to(job.layout.data)},
      {"--ep", to(job.layout.expert)},
      {"--cp", to(job.layout.context)},
      {"--names", to(job.names)},
      {"--entries",
       [&](std::string_view text) {
         const bool good = read(text, job.fill_ring_with);
         job.ring = job.fill_ring_with;
         return good;
       }},
      {"--ring", to(job.ring)},
      {"--steps", to(schedule.steps)},
      {"--microbatches", to(schedule.microbatches)},
      {"--layers", to(schedule.layers)},
      {"--schedule",
       [&](std::string_view text) {
         schedule.batched = text == "1f1b";
         return schedule.batched || text == "gpipe";
       }},
      {"--sequence-parallel", to(schedule.sequence_parallel)},
      {"--fully-sharded", to(schedule.fully_sharded)},
      {"--coalesced", to(schedule.coalesced)},
      {"--sync", to(schedule.sync_often)},
      {"--backend",
       [&](std::string_view text) {
         job.backend = text;
         return !text.empty();
       }},
      {"--version", to(job.versions)},
      {"--timing", to(job.timing)},
      {"--only-active", to(job.only_active)},
      {"--stacks", to(job.stacks)},
      {"--json", to(job.json)},
      {"--ranks-per-node", to(job.ranks_per_node)},
      {"--node-folders", to(job.node_folders)},
      {"--clock-skew-ms", to(job.clock_skew_ms)},
      {"--running", to(job.running)},
      {"--missing", to(job.missing)},
      {"--empty", to(job.empty)},
      {"--cut", to(job.cut)},
      {"--fault", to(job.fault)},
      {"--culprit", to(job.culprit)},
      {"--whole-node", to(job.whole_node)},
      {"--seed", to(job.seed)},
  };
  const auto found = all.find(name);
  return found != all.end() && found->second(value);
}

int run(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0 || std::strcmp(argv[1], "--help") == 0) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  JobOptions options;
  for (int i = 2; i + 1 < argc; i += 2)
    if (!set(options, argv[i], argv[i + 1])) {
      fmt::print(stderr, "make_job: {} {}: no such option or value\n", argv[i],
                 argv[i + 1]);
      return 2;
    }
  const Result<SyntheticJob> job = make_job(options);
  if (!job) {
    fmt::print(stderr, "make_job: {}\n", job.error().message());
    return 2;
  }
  if (std::strcmp(argv[1], "-") == 0) {
    const std::string dump = job->dump(0);
    return std::fwrite(dump.data(), 1, dump.size(), stdout) == dump.size() ? 0
                                                                           : 1;
  }
  const Result<> written = job->write(argv[1]);
  if (!written) {
    fmt::print(stderr, "make_job: {}\n", written.error().message());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace postflight::synthetic

int main(int argc, char** argv) {
  return postflight::synthetic::run(argc, argv);
}
