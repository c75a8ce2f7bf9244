#include "synthetic/family.h"

#include <algorithm>

namespace postflight::synthetic {
namespace {

int power_of_two(Random& random, int most) {
  int value = 1;
  while (value < most && random.chance(50))
    value *= 2;
  return value;
}

Layout draw_layout(FaultKind fault, bool gloo, Random& random) {
  while (true) {
    Layout layout{.tensor = power_of_two(random, 8),
                  .pipeline = gloo ? 1 : power_of_two(random, 8),
                  .data = power_of_two(random, 64),
                  .expert = 1,
                  .context = power_of_two(random, 4)};
    if (random.chance(20))
      layout.data = layout.data * 3;
    if (random.chance(40))
      layout.expert = std::min(layout.data, power_of_two(random, 8));
    if (layout.world() >= 8 && layout.world() <= 512 &&
        layout.data % layout.expert == 0 && can_happen(fault, layout, gloo))
      return layout;
  }
}

}  // namespace

std::string_view disturbance_name(Disturbance disturbance) {
  using enum Disturbance;
  switch (disturbance) {
    case kNone:
      return "none";
    case kRingWrap:
      return "ring_wrap";
    case kOnlyActive:
      return "only_active";
    case kClockSkew:
      return "clock_skew";
    case kMissingDumps:
      return "missing_dumps";
    case kMixedVersions:
      return "mixed_versions";
    case kNoStacks:
      return "no_stacks";
    case kJson:
      return "json";
    case kCutDumps:
      return "cut_dumps";
    case kEmptyDumps:
      return "empty_dumps";
    case kGloo:
      return "gloo";
  }
  return "";
}

std::string_view scenario_name(Scenario scenario) {
  using enum Scenario;
  switch (scenario) {
    case kAfterwards:
      return "afterwards";
    case kMoving:
      return "moving";
    case kMovingSlowly:
      return "moving_slowly";
    case kMovingBehind:
      return "moving_behind";
    case kEarlyDumps:
      return "early_dumps";
    case kEarlyCulprits:
      return "early_culprits";
    case kSeveralAlike:
      return "several_alike";
    case kSeveralFaults:
      return "several_faults";
  }
  return "";
}

namespace {

// The faults of a job that hangs, other than by a difference of arguments.
constexpr FaultKind kStops[] = {FaultKind::kNeverJoined,
                                FaultKind::kDeviceStalled,
                                FaultKind::kPipelineStall};

Scenario draw_scenario(std::size_t index) {
  using enum Scenario;
  constexpr Scenario kTurns[] = {kMoving,       kEarlyDumps,    kMovingSlowly,
                                 kSeveralAlike, kMoving,        kMovingBehind,
                                 kMovingSlowly, kEarlyCulprits, kMoving,
                                 kSeveralFaults};
  return kTurns[index % std::size(kTurns)];
}

void disturb(Disturbance disturbance, JobOptions& job, Random& random) {
  using enum Disturbance;
  switch (disturbance) {
    case kRingWrap:
      job.short_ring = true;
      break;
    case kOnlyActive:
      job.only_active = true;
      job.stacks = random.chance(50);
      break;
    case kClockSkew:
      job.clock_skew_ms = random.between(20, 20'000);
      break;
    case kMissingDumps:
      job.missing = static_cast<int>(random.between(1, 3));
      break;
    case kMixedVersions:
      job.versions = {"2.10", "2.2", "2.5", "2.7", "2.9"};
      break;
    case kNoStacks:
      job.stacks = false;
      break;
    case kJson:
      job.json = true;
      break;
    case kCutDumps:
      job.cut = static_cast<int>(random.between(1, 3));
      break;
    case kEmptyDumps:
      job.empty = static_cast<int>(random.between(1, 2));
      break;
    case kNone:
    case kGloo:
      break;
  }
}

}  // namespace

FamilyMember snapshot_member(std::size_t index) {
  using enum Scenario;
  Random random(0x5a4b + index * 104'729);
  FamilyMember member{.index = index, .options = {}};
  JobOptions& job = member.options;
  member.scenario = draw_scenario(index);
  const bool moving = member.scenario == kMoving ||
                      member.scenario == kMovingSlowly ||
                      member.scenario == kMovingBehind;
  job.fault = FaultKind::kHealthy;
  if (member.scenario == kMovingBehind)
    job.fault = FaultKind::kStraggler;
  else if (!moving)
    job.fault = kStops[random.below(std::size(kStops))];
  // Without start times most stalled devices look like all the others.
  job.timing = random.chance(job.fault == FaultKind::kDeviceStalled ? 70 : 30);
  if (random.chance(40))
    member.disturbance =
        static_cast<Disturbance>(1 + random.below(kDisturbances - 1));
  const bool gloo = member.disturbance == Disturbance::kGloo &&
                    (moving || job.fault == FaultKind::kNeverJoined) &&
                    member.scenario != kSeveralFaults;
  if (member.disturbance == Disturbance::kGloo && !gloo)
    member.disturbance = Disturbance::kNone;
  job.backend = gloo ? "gloo" : "nccl";
  job.timing &= !gloo;
  do
    job.layout = draw_layout(job.fault, gloo, random);
  while (job.layout.world() > 256);
  const bool large = job.layout.world() > 64;
  job.schedule.steps = static_cast<int>(random.between(4, large ? 8 : 30));
  job.schedule.microbatches =
      static_cast<int>(random.between(2, large ? 4 : 8));
  job.schedule.layers = static_cast<int>(random.between(1, large ? 1 : 3));
  job.schedule.batched = random.chance(50);
  job.schedule.sequence_parallel = random.chance(40);
  job.schedule.fully_sharded = random.chance(40);
  job.schedule.coalesced = random.chance(30);
  job.schedule.sync_often = random.chance(30);
  job.names = static_cast<GroupNames>(random.below(3));
  job.node_folders = random.chance(30);
  job.uneven_percent = random.chance(50) ? 0 : 60;
  if (random.chance(60))
    job.compute_scale = random.between(2, 60);
  if (member.scenario == kMovingSlowly) {
    job.compute_scale = random.between(20, 400);
    job.operation_scale = random.between(50, 800);
  }
  job.running = moving;
  constexpr std::int64_t kWindows[] = {2, 20, 200, 1'000, 5'000};
  job.window_ms = kWindows[random.below(std::size(kWindows))];
  if (member.scenario == kEarlyDumps)
    job.early = static_cast<int>(
        random.between(1, std::max(1, job.layout.world() / 4)));
  job.culprits_early = member.scenario == kEarlyCulprits;
  if (member.scenario == kSeveralAlike)
    job.more_faults.assign(random.below(2) + 1, job.fault);
  if (member.scenario == kSeveralFaults)
    job.more_faults = {job.fault == FaultKind::kDeviceStalled
                           ? FaultKind::kNeverJoined
                           : FaultKind::kDeviceStalled};
  job.seed = random.next() >> 8;
  disturb(member.disturbance, job, random);
  return member;
}

FamilyMember family_member(std::size_t index) {
  Random random(0xfa111e + index * 7919);
  FamilyMember member{.index = index, .options = {}};
  JobOptions& job = member.options;
  job.fault = static_cast<FaultKind>(index % kFaultKinds);
  member.disturbance =
      static_cast<Disturbance>(index / kFaultKinds % kDisturbances);
  // gloo records no transfers and has no device.
  if (member.disturbance == Disturbance::kGloo &&
      !can_happen(job.fault, {.tensor = 4, .data = 4, .context = 4}, true))
    member.disturbance = Disturbance::kNone;
  const bool gloo = member.disturbance == Disturbance::kGloo;
  job.backend = gloo ? "gloo" : "nccl";
  job.layout = draw_layout(job.fault, gloo, random);
  const bool large = job.layout.world() > 128;
  job.schedule.steps = static_cast<int>(random.between(3, large ? 4 : 6));
  job.schedule.microbatches =
      static_cast<int>(random.between(2, large ? 4 : 8));
  job.schedule.layers = static_cast<int>(random.between(1, large ? 1 : 3));
  job.schedule.batched = job.fault == FaultKind::kDeadlock || random.chance(50);
  job.schedule.sequence_parallel = random.chance(40);
  job.schedule.fully_sharded = random.chance(40);
  job.schedule.coalesced = random.chance(30);
  job.schedule.sync_often = random.chance(30);
  job.names = static_cast<GroupNames>(random.below(3));
  job.timing = random.chance(30) && !gloo;
  job.node_folders = random.chance(30);
  job.whole_node = random.chance(30);
  // A neighbour's batch to take apart comes after the first forwards.
  if (job.fault == FaultKind::kDeadlock)
    job.schedule.microbatches =
        std::max(job.schedule.microbatches, job.layout.pipeline + 1);
  job.seed = random.next() >> 8;
  disturb(member.disturbance, job, random);
  return member;
}

}  // namespace postflight::synthetic
