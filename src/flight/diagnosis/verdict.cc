#include "flight/diagnosis/verdict.h"

#include <array>
#include <cassert>
#include <cstddef>

namespace postflight {
namespace {

using enum VerdictKind;

constexpr std::string_view kCompareCode =
    "compare the code that led there: a branch that depends on rank or data, "
    "uneven batches, another version of the program.";

constexpr auto kKinds = std::to_array<VerdictTraits>({
    {.kind = kHealthy,
     .name = "healthy",
     .headline = "WELL",
     .severity = Severity::kNote,
     .culprits = Standing::kUnknown,
     .advice = ""},
    {.kind = kInconclusive,
     .name = "inconclusive",
     .headline = "UNCLEAR",
     .severity = Severity::kWarning,
     .culprits = Standing::kUnknown,
     .advice = "gather the dumps of all ranks, with TORCH_FR_BUFFER_SIZE large "
               "enough to hold some minutes."},
    {.kind = kNeverJoined,
     .name = "never_joined",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = Standing::kMissing,
     .advice = "look at what that process does outside of collectives: its own "
               "log, py-spy dump, its data loader, a slow or full disk."},
    {.kind = kNoDump,
     .name = "no_dump",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = Standing::kNoDump,
     .advice = "look for that process's end: its log, the kernel's log for the "
               "OOM killer and Xid errors, the host itself."},
    {.kind = kTypeMismatch,
     .name = "type_mismatch",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = Standing::kMismatched,
     .advice = kCompareCode},
    {.kind = kSizeMismatch,
     .name = "size_mismatch",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = Standing::kMismatched,
     .tensors_differ = true,
     .advice = kCompareCode},
    {.kind = kDtypeMismatch,
     .name = "dtype_mismatch",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = Standing::kMismatched,
     .tensors_differ = true,
     .advice = kCompareCode},
    {.kind = kOrderMismatch,
     .name = "order_mismatch",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = Standing::kMismatched,
     .advice = "make all ranks use their groups in the same order."},
    {.kind = kPointToPoint,
     .name = "p2p_unmatched",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = Standing::kMissing,
     .advice = "compare the schedule of sends and receives of the two ranks."},
    {.kind = kDeviceStalled,
     .name = "device_stalled",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = Standing::kStalled,
     .advice = "look at that device: nvidia-smi, Xid errors in the kernel's "
               "log, a kernel of the program that does not end."},
    {.kind = kAllJoinedStuck,
     .name = "all_joined_stuck",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = Standing::kUnknown,
     .advice = "suspect the network or the library: NCCL_DEBUG=WARN, the links "
               "of the hosts; record start times with "
               "TORCH_NCCL_ENABLE_TIMING=1."},
    {.kind = kStraggler,
     .name = "straggler",
     .headline = "SLOW",
     .severity = Severity::kWarning,
     .culprits = Standing::kBehind,
     .advice = "profile that rank, and compare its host's clock, temperature "
               "and other load."},
});

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i].kind != static_cast<VerdictKind>(i))
      return false;
  return kKinds.size() == static_cast<std::size_t>(kCount);
}
static_assert(is_in_order(), "each kind has a row, in the order of the enum");

}  // namespace

const VerdictTraits& traits(VerdictKind kind) {
  assert(kind < kCount);
  return kKinds[static_cast<std::size_t>(kind)];
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

std::string_view role_name(EvidenceRole role) {
  switch (role) {
    case EvidenceRole::kWaiting:
      return "waiting";
    case EvidenceRole::kLast:
      return "last";
    case EvidenceRole::kNoEntries:
      return "no entries";
    case EvidenceRole::kDiffers:
      return "differs";
    case EvidenceRole::kMajority:
      return "majority";
  }
  return "";
}

std::string_view standing_name(Standing standing) {
  switch (standing) {
    case Standing::kMissing:
      return "missing";
    case Standing::kMismatched:
      return "mismatched";
    case Standing::kStalled:
      return "stalled";
    case Standing::kNoDump:
      return "no_dump";
    case Standing::kBehind:
      return "behind";
    case Standing::kUnknown:
      return "unknown";
    case Standing::kWaiting:
      return "waiting";
    case Standing::kDone:
      return "done";
  }
  return "";
}

}  // namespace postflight
