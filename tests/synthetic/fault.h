#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "synthetic/schedule.h"
#include "synthetic/simulation.h"
#include "synthetic/topology.h"
#include "synthetic/truth.h"

namespace postflight::synthetic {

enum class FaultKind : std::uint8_t {
  kHealthy,
  kNeverJoined,     // a host, or all of a node, stops before a collective
  kPipelineStall,   // a host stops before a transfer
  kDeviceStalled,   // a device stops before a collective, or fails in one
  kAllJoinedStuck,  // a collective never ends
  kTypeMismatch,
  kSizeMismatch,
  kDtypeMismatch,
  kSkipped,    // one rank leaves a collective out
  kExtra,      // one rank calls a collective twice
  kOrderSwap,  // of collectives on two groups
  kWrongGroup,
  kP2pUnmatched,
  kDeadlock,  // neighbours in the pipeline wait for each other
  kNoDump,    // a process, or all of a node, dies
  kStraggler,
};
constexpr std::size_t kFaultKinds = 16;

std::string_view fault_name(FaultKind kind);
// Whether the job's layout and backend allow for that fault.
bool can_happen(FaultKind kind, const Layout& layout, bool gloo);

struct FaultOptions {
  FaultKind kind = FaultKind::kHealthy;
  int rank = -1;  // the culprit; -1: any
  bool whole_node = false;
  int ranks_per_node = 8;
  bool timing = false;
  bool gloo = false;
  // Whether all records up to the end are kept and dumped, so that the evidence
  // may be an operation that has ended.
  bool full_history = true;
};

// What the fault does besides changing the schedule.
struct Planned {
  Truth truth;
  Disagreement disagreement = Disagreement::kAllStick;
  std::vector<int> dead;      // leave no dump
  std::vector<int> involved;  // without their dumps no diagnosis is possible
};

// Puts the fault into the schedule. An error if the job has no place for it.
Result<Planned> plan_fault(const FaultOptions& options,
                           const Topology& topology, Schedule& schedule,
                           Random& random);

}  // namespace postflight::synthetic
