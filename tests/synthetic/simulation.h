#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "synthetic/random.h"
#include "synthetic/schedule.h"
#include "synthetic/topology.h"

namespace postflight::synthetic {

constexpr std::int64_t kNever = -1;

enum class RecordKind : std::uint8_t {
  kCollective,
  kTransfer,  // plain
  kMember,    // of a batch of transfers, judged by its closing record
  kCoalescedMember,
  kClosing,
};

// What the recorder of a rank keeps of one call. Times are nanoseconds since
// the job's start, by one clock for all.
struct Record {
  std::int64_t created = 0;
  std::int64_t ready = kNever;  // the device began to wait for the others
  std::int64_t completed = kNever;
  std::int32_t sequence = 0;
  std::int32_t p2p_sequence = 0;
  std::int32_t operation_id = 0;
  SiteId site = 0;
  std::int16_t peer = -1;  // of a transfer, its rank in the group
  Axis axis = Axis::kWorld;
  RecordKind kind = RecordKind::kCollective;
  bool send = false;
  bool p2p_batch = false;   // of a closing record
  bool unlaunched = false;  // the host blocked before the device heard of it

  bool point_to_point() const {
    return kind == RecordKind::kTransfer || kind == RecordKind::kMember;
  }
  bool in_batch() const {
    return kind == RecordKind::kMember || kind == RecordKind::kCoalescedMember;
  }
};

// What NCCL does when one rank's call differs from the others'.
enum class Disagreement : std::uint8_t {
  kAllStick,
  kMinoritySticks,
  kNobodyNotices,
};

struct SimulationOptions {
  Disagreement disagreement = Disagreement::kAllStick;
  bool blocking = false;  // as gloo: the host waits for each operation
  // How many times longer computing and communicating take.
  std::int64_t compute_scale = 1;
  std::int64_t operation_scale = 1;
  int uneven_percent = 0;  // by which a rank's work may exceed the others'
  std::uint64_t seed = 1;
};

struct Simulated {
  std::vector<std::vector<Record>> records;  // by rank
  // When a fault of its own stopped the rank's host or device; kNever: none
  // did.
  std::vector<std::int64_t> struck;
  std::int64_t end = 0;  // when the last thing happened
  bool hung = false;     // some host or device still waits
};

// Runs the schedule on all ranks. Hosts enqueue one call after the other and
// wait only at host syncs; a device runs the calls of each group in order, and
// a call ends when all members' devices have reached it. So if one rank stops,
// the others stop where they would in a real job, with calls that their hosts
// had already enqueued queued behind the one they wait in.
Simulated simulate(const Schedule& schedule, const Topology& topology,
                   const SimulationOptions& options);

}  // namespace postflight::synthetic
