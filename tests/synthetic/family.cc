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
  using enum Disturbance;
  switch (member.disturbance) {
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
  return member;
}

}  // namespace postflight::synthetic
