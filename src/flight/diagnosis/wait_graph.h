#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flight/diagnosis/motion.h"
#include "flight/matching/matching.h"

namespace postflight {

// An operation that is not completed, a collective or a point-to-point
// transfer, with the ranks that wait in it and those that they wait for.
struct Wait {
  GroupId group;
  std::int64_t sequence = 0;              // of a collective
  std::optional<Transfer> transfer = {};  // the waiting rank's side
  struct Waiter {
    std::uint32_t rank = 0;   // its index in WaitGraph::world
    std::uint32_t entry = 0;  // in its dump
    // The entry that closes its batch, or itself.
    std::uint32_t unit = 0;
    bool oldest = false;  // the rank waits in nothing older
  };
  std::vector<Waiter> waiting = {};
  // Indexes in WaitGraph::world.
  std::vector<std::uint32_t> absent = {};   // certainly did not join
  std::vector<std::uint32_t> unknown = {};  // no dump, or a truncated one
  // Not there in a dump that is older than the others: it may have come since.
  std::vector<std::uint32_t> later = {};
  std::vector<std::uint32_t> busy = {};  // joined, but is blocked by older work
  std::vector<std::uint32_t> done = {};  // completed it
};

// The end of a chain of waits. All other waits lead to one of these, directly
// or indirectly.
struct WaitRoot {
  enum class Kind : std::uint8_t {
    kIdle,     // a rank that waits for nothing and did not join
    kUnknown,  // a rank without a dump
    kStuck,    // a collective that all have joined
    kCycle,    // ranks that wait for each other
  };
  Kind kind = Kind::kIdle;
  std::vector<std::uint32_t> ranks;  // indexes in WaitGraph::world
  std::vector<std::uint32_t> waits;  // indexes in WaitGraph::waits
};

// Which rank waits for which, over all groups.
struct WaitGraph {
  std::vector<Rank> world;
  std::vector<Wait> waits;
  // For each rank of the world, the waits that it is in, the oldest first.
  std::vector<std::vector<std::uint32_t>> waits_of;
  std::vector<WaitRoot> roots;

  std::uint32_t place(Rank rank) const;
  bool idle(std::uint32_t rank) const { return waits_of[rank].empty(); }
  // The ranks that a wait waits for: those that did not join, or else those
  // that are unknown or busy, or else those that may have come later.
  std::vector<std::uint32_t> targets(const Wait& wait) const;
  // All ranks that wait for one of these, directly or not.
  std::vector<Rank> waiting_for(std::span<const std::uint32_t> ranks) const;
};

WaitGraph make_wait_graph(const Matching& matching, const Motion& motion);

}  // namespace postflight
