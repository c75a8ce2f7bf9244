#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "synthetic/call_sites.h"
#include "synthetic/random.h"

namespace postflight::synthetic::cluster {

// A process group of the job, and what its backend may do.
struct Group {
  std::string name;
  std::string description;
  std::vector<int> members;  // sorted

  int position(int rank) const;
};

// One tensor of a transfer.
struct Piece {
  int peer = 0;  // of the job
  bool send = false;
  SiteId site = 0;
};

enum class OpKind : std::uint8_t {
  kCollective,
  kCoalesced,  // several collectives closed by an entry of their own
  kTransfers,
  kCompute,   // on the device
  kHostWork,  // on the host
  kSync,      // the host waits for its device: loss.item()
  kJoin,      // the compute stream waits for what ran beside it
};

// What a rank's host does next; the flags below `ns` are faults.
struct Op {
  OpKind kind = OpKind::kCompute;
  bool side = false;     // async_op: the compute stream goes on meanwhile
  bool batched = false;  // of kTransfers
  int group = -1;
  int root = -1;  // position in the group of a rooted operation
  SiteId site = 0;
  std::vector<Piece> pieces = {};
  std::int64_t ns = 0;

  bool host_stops = false;    // before this
  bool host_blocks = false;   // in launching it: recorded, never launched
  bool device_stops = false;  // in a kernel before it
  bool device_fails = false;  // as it ends: only the others see that
  bool never_ends = false;    // although all have joined

  bool communicates() const {
    return kind == OpKind::kCollective || kind == OpKind::kCoalesced ||
           kind == OpKind::kTransfers;
  }
};

enum class Layout : std::uint8_t {
  kDdp,
  kFsdp,
  kHsdp,
  kTensor,
  kPipeline,             // plain sends and receives
  kPipelineBatched,      // one forward one backward
  kPipelineInterleaved,  // two chunks of the model on each rank
  kPipelineUneven,       // stages with different numbers of operations
  kExpert,
  kRingContext,  // keys travel around a ring
  kMesh,         // tensor, pipeline and data
  kRooted,       // with scatter, gather, broadcast and reduce
  kCoalesced,
  kGloo,
};
constexpr std::size_t kLayouts = 14;
std::string_view layout_name(Layout layout);

// What the ranks of a job run: for each rank all it does, in order.
struct Program {
  std::vector<Group> groups;
  CallSites sites;
  std::vector<std::vector<Op>> ranks;
  // For each rank and step, the index of its first op, and the end.
  std::vector<std::vector<std::size_t>> steps;

  int world() const { return static_cast<int>(ranks.size()); }
  std::vector<Op>& of(int rank) {
    return ranks[static_cast<std::size_t>(rank)];
  }
  const std::vector<Op>& of(int rank) const {
    return ranks[static_cast<std::size_t>(rank)];
  }
};

struct ProgramOptions {
  Layout layout = Layout::kDdp;
  int world = 8;
  int steps = 6;
  int layers = 3;
  int microbatches = 4;
  std::int64_t compute_ns = 1'000'000;  // of a layer
  std::int64_t load_ns = 0;             // of the data loader, on the host
  // In percent, by how much a rank's work may exceed what is usual.
  int uneven = 0;
  bool sync_often = false;
  std::uint64_t seed = 1;
};

Program make_program(const ProgramOptions& options);

}  // namespace postflight::synthetic::cluster
