#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flight/matching/matching.h"

namespace postflight {

// Something that is not done, and whom those in it wait for: a collective of a
// group, or a transfer between two ranks.
struct Wait {
  GroupId group;
  std::int64_t sequence = 0;              // of a collective
  std::optional<Transfer> transfer = {};  // of a transfer: the waiting rank's
  struct Waiter {
    std::uint32_t rank = 0;   // its place in WaitGraph::world
    std::uint32_t entry = 0;  // in its dump
    // The entry that ends what was enqueued as one: a batch, or itself.
    std::uint32_t unit = 0;
    bool oldest = false;  // nothing that it waits in was enqueued before
  };
  std::vector<Waiter> waiting = {};
  // Places in WaitGraph::world.
  std::vector<std::uint32_t> absent = {};   // never came, for sure
  std::vector<std::uint32_t> unknown = {};  // no dump, or one that breaks off
  std::vector<std::uint32_t> busy = {};  // came, but has older work in its way
  std::vector<std::uint32_t> done = {};  // are past it
};

// Where the waiting ends. Everything else waits for one of these, directly or
// through others.
struct WaitRoot {
  enum class Kind : std::uint8_t {
    kIdle,     // a rank that waits for nothing, and never came
    kUnknown,  // a rank without a dump
    kStuck,    // a collective that all have joined
    kCycle,    // ranks that wait for each other
  };
  Kind kind = Kind::kIdle;
  std::vector<std::uint32_t> ranks;  // places in WaitGraph::world
  std::vector<std::uint32_t> waits;  // places in WaitGraph::waits
};

// Who waits for whom, over all groups.
struct WaitGraph {
  std::vector<Rank> world;
  std::vector<Wait> waits;
  // Of each rank of the world, the waits it is in, the oldest first.
  std::vector<std::vector<std::uint32_t>> waits_of;
  std::vector<WaitRoot> roots;

  std::uint32_t place(Rank rank) const;
  bool idle(std::uint32_t rank) const { return waits_of[rank].empty(); }
  // Whom the ranks in a wait wait for: those who never came, else those who
  // are unknown or busy.
  std::vector<std::uint32_t> targets(const Wait& wait) const;
  // All ranks that wait for one of these, directly or not.
  std::vector<Rank> waiting_for(std::span<const std::uint32_t> ranks,
                                std::span<const std::uint32_t> waits) const;
};

WaitGraph make_wait_graph(const Matching& matching);

}  // namespace postflight
