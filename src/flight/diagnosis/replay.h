#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/verdict.h"

namespace postflight {

// What of a rank the replay changes.
enum class ChangeKind : std::uint8_t {
  kJoins,
  kDeviceFinishes,
  kCallsAsOthers,
  kPartnerAppears,
};

// An operation that is not done: a collective, or a transfer with both sides.
struct PendingOperation {
  GroupId group;
  std::int64_t sequence = 0;
  bool transfer = false;
  bool send = false;                 // the side that waits, of a transfer
  std::uint32_t entry = 0;           // of the first that called it
  std::vector<std::uint32_t> units;  // of all that called it
  // Places in WaitGraph::world.
  std::vector<std::uint32_t> absent;
  std::vector<std::uint32_t> unknown;
  bool disagrees = false;
};

// What is not done in a job, to be run with and without the changes of the
// ranks that a verdict accuses.
class Replay {
 public:
  Replay(const Case& facts, const Verdict& verdict, ChangeKind kind);

  // Whether each rank of the world still waits at the end, with the accused
  // ranks in `changed` (by place) changed and the others as they are.
  std::vector<char> run(const std::vector<char>& changed) const;
  // Whether the operation ends if nobody is changed; false if it is not
  // pending.
  bool ends_anyway(GroupId group, std::int64_t sequence) const;

  // Whether a rank waits in its dump.
  bool waits(std::uint32_t rank) const { return !queues_[rank].empty(); }

  // The operation to tell of, with the most ranks that wait in it for this one,
  // and of several that in which `teller` waits; nullptr if there is none.
  const PendingOperation* missed_by(std::uint32_t rank,
                                    std::optional<Rank> teller) const;
  const PendingOperation* oldest_of(std::uint32_t rank) const;
  std::uint32_t caller(const PendingOperation& operation) const;
  // The next number after `sequence` that one of `ranks` waits in.
  std::optional<std::int64_t> next_after(GroupId group, std::int64_t sequence,
                                         const std::vector<char>& ranks) const;

 private:
  // Operations at the front of a rank's queue that are replayed. Who gets to
  // the end of these goes on.
  static constexpr std::size_t kMostUnits = 256;

  class Run;

  // What one rank has to do at once: an operation, or a batch.
  struct Unit {
    std::uint32_t rank = 0;  // place in WaitGraph::world
    std::uint32_t closing = 0;
    std::vector<std::uint32_t> operations;
  };

  std::uint32_t unit_of(std::uint32_t rank, std::uint32_t closing);
  void call(std::uint32_t operation, std::uint32_t rank, std::uint32_t closing);
  void add_collectives(GroupId group);
  void add_transfers();
  const Transfer& receive_of(const Transfer& send) const;
  void order_units();
  // Whether the calls can't work together, without those of `adopted` ranks,
  // which call what the others call.
  bool disagrees(const PendingOperation& operation,
                 const std::vector<char>& adopted) const;
  CallId call_at(Rank rank, std::uint32_t entry) const;

  const Case& facts_;
  const Matching& matching_;
  const ChangeKind kind_;
  std::vector<char> accused_;
  std::vector<PendingOperation> operations_;
  std::vector<Unit> units_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
      unit_numbers_;
  std::vector<std::vector<std::uint32_t>> queues_;  // units of each rank
};

}  // namespace postflight
