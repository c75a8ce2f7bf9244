#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "synthetic/synthetic_job.h"

namespace postflight::synthetic {

// Disturbances of a job in addition to its fault.
enum class Disturbance : std::uint8_t {
  kNone,
  kRingWrap,
  kOnlyActive,
  kClockSkew,
  kMissingDumps,
  kMixedVersions,
  kNoStacks,
  kJson,
  kCutDumps,
  kEmptyDumps,
  kGloo,
};
constexpr std::size_t kDisturbances = 11;

std::string_view disturbance_name(Disturbance disturbance);

// How the dumps of a job lie in time, and how many faults it has.
enum class Scenario : std::uint8_t {
  kAfterwards,     // all dumps after the end, or after the time-out
  kMoving,         // nobody is at fault, and the job runs while ranks dump
  kMovingSlowly,   // likewise, with operations of up to a second
  kMovingBehind,   // likewise, with a straggler
  kEarlyDumps,     // a hang; some innocent ranks dumped before it
  kEarlyCulprits,  // a hang; the culprits dumped when they stopped
  kSeveralAlike,   // a hang by several ranks with the same fault
  kSeveralFaults,  // a hang by ranks with different faults
};
constexpr std::size_t kScenarios = 8;

std::string_view scenario_name(Scenario scenario);

struct FamilyMember {
  std::size_t index = 0;
  Disturbance disturbance = Disturbance::kNone;
  Scenario scenario = Scenario::kAfterwards;
  JobOptions options;
};

// One of an endless sequence of jobs, in which every kind of fault is combined
// with every disturbance once in 176 jobs; the rest is drawn at random.
FamilyMember family_member(std::size_t index);

// Another one, of jobs whose dumps were taken at different moments, that were
// still moving, or that have several faults. Half of them have no fault.
FamilyMember snapshot_member(std::size_t index);

}  // namespace postflight::synthetic
