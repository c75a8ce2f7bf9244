#include "synthetic/fault.h"

namespace postflight::synthetic {

std::string_view fault_name(FaultKind kind) {
  using enum FaultKind;
  switch (kind) {
    case kHealthy:
      return "healthy";
    case kNeverJoined:
      return "never_joined";
    case kPipelineStall:
      return "pipeline_stall";
    case kDeviceStalled:
      return "device_stalled";
    case kAllJoinedStuck:
      return "all_joined_stuck";
    case kTypeMismatch:
      return "type_mismatch";
    case kSizeMismatch:
      return "size_mismatch";
    case kDtypeMismatch:
      return "dtype_mismatch";
    case kSkipped:
      return "skipped";
    case kExtra:
      return "extra";
    case kOrderSwap:
      return "order_swap";
    case kWrongGroup:
      return "wrong_group";
    case kP2pUnmatched:
      return "p2p_unmatched";
    case kDeadlock:
      return "deadlock";
    case kNoDump:
      return "no_dump";
    case kStraggler:
      return "straggler";
  }
  return "";
}

bool can_happen(FaultKind kind, const Layout& layout, bool gloo) {
  using enum FaultKind;
  switch (kind) {
    case kPipelineStall:
    case kP2pUnmatched:
    case kDeadlock:
      return layout.pipeline > 1 && !gloo;
    case kDeviceStalled:
      return !gloo;
    case kSkipped:
    case kExtra:
      return layout.data > 2 || layout.tensor > 2 || layout.context > 2;
    case kOrderSwap:
      return layout.data > 1;
    case kWrongGroup:
      return layout.tensor > 1 || layout.data > 1 || layout.context > 1;
    default:
      return true;
  }
}

}  // namespace postflight::synthetic
