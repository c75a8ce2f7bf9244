#include "flight/diagnosis/verdict.h"

#include <array>
#include <cassert>
#include <cstddef>

namespace postflight {
namespace {

using enum VerdictKind;

constexpr std::string_view kCompareCode =
    "compare the code paths: look for a branch that depends on rank or data, "
    "uneven batches, or another version of the program.";

constexpr auto kKinds = std::to_array<VerdictTraits>({
    {.kind = kHealthy,
     .name = "healthy",
     .headline = "OK",
     .severity = Severity::kNote,
     .culprits = RankState::kUnknown,
     .action = Action::kNever,
     .advice =
         "if the job hangs all the same, collect the stacks of all ranks "
         "(postflight stacks --mine on each node) and their logs (--log), "
         "and dump again a minute later."},
    {.kind = kInProgress,
     .name = "in_progress",
     .headline = "MOVING",
     .severity = Severity::kNote,
     .culprits = RankState::kUnknown,
     .action = Action::kIfStrict,
     .advice = "dump again after a minute: ranks that still wait in the same "
               "operations hang."},
    {.kind = kInconclusive,
     .name = "inconclusive",
     .headline = "UNCLEAR",
     .severity = Severity::kWarning,
     .culprits = RankState::kUnknown,
     .action = Action::kIfPending,
     .advice =
         "collect the dumps of all ranks, with TORCH_FR_BUFFER_SIZE large "
         "enough for several minutes."},
    {.kind = kNeverJoined,
     .name = "never_joined",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = RankState::kMissing,
     .advice =
         "check what that process does outside of collectives: its log, "
         "its stacks (postflight stacks --pid N), its data loader, a slow "
         "or full disk."},
    {.kind = kNoDump,
     .name = "no_dump",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = RankState::kNoDump,
     .advice = "find out how that process ended: check its log, the kernel log "
               "for the OOM killer and Xid errors, and the host."},
    {.kind = kTypeMismatch,
     .name = "type_mismatch",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = RankState::kMismatched,
     .advice = kCompareCode},
    {.kind = kSizeMismatch,
     .name = "size_mismatch",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = RankState::kMismatched,
     .tensors_differ = true,
     .advice = kCompareCode},
    {.kind = kDtypeMismatch,
     .name = "dtype_mismatch",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = RankState::kMismatched,
     .tensors_differ = true,
     .advice = kCompareCode},
    {.kind = kOrderMismatch,
     .name = "order_mismatch",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = RankState::kMismatched,
     .advice = "make all ranks use their groups in the same order."},
    {.kind = kPointToPoint,
     .name = "p2p_unmatched",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = RankState::kMissing,
     .advice = "compare the schedules of sends and receives of the two ranks."},
    {.kind = kDeviceStalled,
     .name = "device_stalled",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = RankState::kStalled,
     .advice = "check that device: nvidia-smi, Xid errors in the kernel log, a "
               "CUDA kernel that does not finish."},
    {.kind = kAllJoinedStuck,
     .name = "all_joined_stuck",
     .headline = "HANG",
     .severity = Severity::kError,
     .culprits = RankState::kUnknown,
     .advice = "check the network and the communication library: set "
               "NCCL_DEBUG=WARN, check the hosts' links, and record start "
               "times with TORCH_NCCL_ENABLE_TIMING=1."},
    {.kind = kStraggler,
     .name = "straggler",
     .headline = "SLOW",
     .severity = Severity::kWarning,
     .culprits = RankState::kBehind,
     .advice =
         "profile that rank (postflight profile --pid N --mode wall), and "
         "compare its host's clock, temperature and other load."},
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
    case EvidenceRole::kReported:
      return "reported";
  }
  return "";
}

std::string_view witness_name(Witness witness) {
  switch (witness) {
    case Witness::kDump:
      return "dump";
    case Witness::kLog:
      return "log";
    case Witness::kHosts:
      return "hosts";
    case Witness::kStacks:
      return "stacks";
    case Witness::kSummary:
      return "summary";
  }
  return "";
}

std::string_view rank_state_name(RankState state) {
  switch (state) {
    case RankState::kMissing:
      return "missing";
    case RankState::kMismatched:
      return "mismatched";
    case RankState::kStalled:
      return "stalled";
    case RankState::kNoDump:
      return "no_dump";
    case RankState::kBehind:
      return "behind";
    case RankState::kUnknown:
      return "unknown";
    case RankState::kWaiting:
      return "waiting";
    case RankState::kDone:
      return "done";
  }
  return "";
}

}  // namespace postflight
