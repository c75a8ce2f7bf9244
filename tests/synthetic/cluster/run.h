#pragma once

#include <cstdint>
#include <vector>

#include "synthetic/cluster/program.h"

namespace postflight::synthetic::cluster {

constexpr std::int64_t kNever = -1;

// What NCCL does when the calls of one number differ.
enum class Differing : std::uint8_t {
  kAllStick,
  kMinoritySticks,
  kNobodyNotices,
};

struct RunOptions {
  Differing differing = Differing::kAllStick;
  bool blocking = false;  // as gloo
  // Whether sends and the roots of broadcasts end before the others come.
  bool eager = false;
  std::int64_t transfer_ns = 200'000;  // what an operation takes, at least
  int slow_group = -1;                 // whose link is slow
  std::int64_t slow_ns = 0;
  int late_rank = -1;  // a straggler
  std::int64_t late_ns = 0;
  // Nothing happens after this: four hours.
  std::int64_t until = 14'400'000'000'000;
  std::uint64_t seed = 1;
};

enum class EntryKind : std::uint8_t {
  kCollective,
  kTransfer,
  kMember,  // of a batch
  kClosing,
};

// What a recorder keeps of a call. Times are of one clock for all ranks.
struct Kept {
  EntryKind kind = EntryKind::kCollective;
  std::int32_t group = 0;
  std::int32_t sequence = 0;
  std::int32_t p2p_sequence = 0;
  std::int32_t operation_id = 0;
  SiteId site = 0;
  std::int32_t root = -1;
  std::int32_t peer = -1;  // of the job
  std::int32_t judge = 0;  // the entry that has its state
  bool send = false;
  bool of_transfers = false;
  bool unlaunched = false;
  std::int64_t created = 0;
  std::int64_t ready = kNever;
  std::int64_t completed = kNever;
};

struct Ran {
  std::vector<std::vector<Kept>> kept;  // by rank
  // When a fault of its own hit it.
  std::vector<std::int64_t> struck;
  std::vector<std::uint32_t> open;  // tasks that never ended
  std::int64_t end = 0;             // when the last thing happened
  bool hung = false;
  bool cut = false;  // something would have happened later
};

// Plays the program against the clock: hosts enqueue, streams execute in order,
// operations end when all that they need have come and their time has passed.
Ran run_program(const Program& program, const RunOptions& options);

}  // namespace postflight::synthetic::cluster
