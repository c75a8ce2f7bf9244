#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "synthetic/synthetic_job.h"

namespace postflight::synthetic {

// What else was odd about a job besides its fault.
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

struct FamilyMember {
  std::size_t index = 0;
  Disturbance disturbance = Disturbance::kNone;
  JobOptions options;
};

// One of an endless row of jobs, in which every kind of fault meets every
// disturbance once in 176 jobs; layout, schedule and all else are drawn.
FamilyMember family_member(std::size_t index);

}  // namespace postflight::synthetic
