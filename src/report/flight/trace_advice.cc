#include "report/flight/trace_advice.h"

#include <fmt/format.h>

#include "base/escape.h"

namespace postflight {
namespace {

std::string_view what_to_do(VerdictKind kind) {
  using enum VerdictKind;
  switch (kind) {
    case kHealthy:
      return "";
    case kInconclusive:
      return "gather the dumps of all ranks, with TORCH_FR_BUFFER_SIZE large "
             "enough to hold some minutes.";
    case kNeverJoined:
      return "look at what that process does outside of collectives: its own "
             "log, py-spy dump, its data loader, a slow or full disk.";
    case kNoDump:
      return "look for that process's end: its log, the kernel's log for the "
             "OOM killer and Xid errors, the host itself.";
    case kTypeMismatch:
    case kSizeMismatch:
    case kDtypeMismatch:
      return "compare the code that led there: a branch that depends on rank "
             "or data, uneven batches, another version of the program.";
    case kOrderMismatch:
      return "make all ranks use their groups in the same order.";
    case kPointToPoint:
      return "compare the schedule of sends and receives of the two ranks.";
    case kDeviceStalled:
      return "look at that device: nvidia-smi, Xid errors in the kernel's log, "
             "a kernel of the program that does not end.";
    case kAllJoinedStuck:
      return "suspect the network or the library: NCCL_DEBUG=WARN, the links "
             "of the hosts; record start times with "
             "TORCH_NCCL_ENABLE_TIMING=1.";
    case kStraggler:
      return "profile that rank, and compare its host's clock, temperature and "
             "other load.";
  }
  return "";
}

}  // namespace

std::vector<std::string> advice(const Verdict& verdict,
                                std::string_view source) {
  std::vector<std::string> lines;
  if (const std::string_view todo = what_to_do(verdict.kind); !todo.empty())
    lines.push_back(fmt::format("Do:   {}", todo));
  if (!verdict.culprits.empty())
    lines.push_back(fmt::format("Next: postflight trace {} --rank {}",
                                escape_for_terminal(source),
                                verdict.culprits[0].value));
  else if (verdict.pending)
    lines.push_back(fmt::format("Next: postflight entries {}",
                                escape_for_terminal(source)));
  return lines;
}

}  // namespace postflight
