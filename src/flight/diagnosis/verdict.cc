#include "flight/diagnosis/verdict.h"

namespace postflight {

std::string_view kind_name(VerdictKind kind) {
  using enum VerdictKind;
  switch (kind) {
    case kHealthy:
      return "healthy";
    case kInconclusive:
      return "inconclusive";
    case kNeverJoined:
      return "never_joined";
    case kNoDump:
      return "no_dump";
    case kTypeMismatch:
      return "type_mismatch";
    case kSizeMismatch:
      return "size_mismatch";
    case kDtypeMismatch:
      return "dtype_mismatch";
    case kOrderMismatch:
      return "order_mismatch";
    case kPointToPoint:
      return "p2p_unmatched";
    case kDeviceStalled:
      return "device_stalled";
    case kAllJoinedStuck:
      return "all_joined_stuck";
    case kStraggler:
      return "straggler";
  }
  return "";
}

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::kPossible:
      return "possible";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kCertain:
      return "certain";
  }
  return "";
}

std::string_view standing_name(Standing standing) {
  switch (standing) {
    case Standing::kDone:
      return "done";
    case Standing::kWaiting:
      return "waiting";
    case Standing::kMissing:
      return "missing";
    case Standing::kMismatched:
      return "mismatched";
    case Standing::kStalled:
      return "stalled";
    case Standing::kBehind:
      return "behind";
    case Standing::kNoDump:
      return "no_dump";
    case Standing::kUnknown:
      return "unknown";
  }
  return "";
}

}  // namespace postflight
