// Hangs spread: one rank stops, its tensor-parallel peers wait for it, their
// data-parallel peers wait for those, until every group of the job is stuck.
// The rank at fault is where the chains of waits end.
//
// The nodes of the graph are ranks and waits. A rank has an edge to the oldest
// wait that it is in of each group; what is enqueued after that is only delayed
// by it. A wait has edges to the members that did not join, or if all joined,
// to those that still have older work in another group. A strongly connected
// component without outgoing edges is a root: a single rank that waits for
// nothing, a wait that all have joined, or a cycle. For example, rank 0 waits
// in group a for rank 1, which waits in group b for rank 0: a cycle of two
// ranks that use the groups in different orders.
#include "flight/diagnosis/wait_graph.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "flight/diagnosis/components.h"

namespace postflight {
namespace {

class Maker {
 public:
  Maker(const Matching& matching, const Motion& motion)
      : matching_(matching), motion_(motion), job_(matching.job()) {}

  WaitGraph make() && {
    graph_.world = job_.world();
    graph_.waits_of.resize(graph_.world.size());
    for (const Rank rank : job_.without_dump())
      without_dump_.push_back(graph_.place(rank));
    oldest_unit_.assign(graph_.world.size(),
                        std::numeric_limits<std::uint32_t>::max());
    add_collectives();
    add_transfers();
    order_waits();
    find_targets();
    find_roots();
    return std::move(graph_);
  }

 private:
  void add_collectives() {
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
      std::map<std::int64_t, std::uint32_t> by_sequence;
      for (const Lane& lane : matching_.lanes({g})) {
        const Slot* const slot = first_wait(lane, {g});
        if (slot == nullptr)
          continue;
        const auto next = static_cast<std::uint32_t>(graph_.waits.size());
        const auto [found, is_new] =
            by_sequence.try_emplace(slot->sequence, next);
        if (is_new)
          graph_.waits.push_back(
              {.group = {g}, .sequence = slot->sequence, .transfer = {}});
        join(found->second,
             {graph_.place(lane.rank), slot->entry, slot->closing});
      }
      std::size_t older = 0;
      for (const auto& [sequence, wait] : by_sequence)
        if (++older > kMostPlaces)
          crowded_.insert(wait);
    }
  }

  std::size_t place_in_job(const RankDump& dump) const {
    return static_cast<std::size_t>(&dump - job_.ranks.data());
  }

  // The oldest operation of the group that the rank is not done with. What an
  // early dump shows as pending has ended since if others have finished it.
  const Slot* first_wait(const Lane& lane, GroupId group) const {
    const Slot* slot = lane.first_pending();
    if (slot == nullptr || lane.dump == nullptr ||
        !motion_.early[place_in_job(*lane.dump)])
      return slot;
    const std::int64_t finished = motion_.finished[group.value];
    const Slot* const end = lane.slots.data() + lane.slots.size();
    while (slot != end && (slot->done || slot->sequence <= finished))
      ++slot;
    return slot == end ? nullptr : slot;
  }

  // For each channel, the oldest incomplete transfer of either side.
  void add_transfers() {
    for (const Channel& channel : matching_.channels()) {
      if (channel.source.value < 0 || channel.destination.value < 0)
        continue;
      if (channel.sends_done < channel.sends.size())
        add_transfer(channel.sends[channel.sends_done]);
      if (channel.receives_done < channel.receives.size())
        add_transfer(channel.receives[channel.receives_done]);
    }
  }

  void add_transfer(TransferPlace place) {
    const Transfer& transfer = matching_.transfer(place);
    // The other side is completed, so this one is only noticed late.
    if (transfer.other == Presence::kDone)
      return;
    Wait wait = {.group = transfer.group, .sequence = 0, .transfer = transfer};
    const std::uint32_t peer = graph_.place(transfer.peer);
    const RankDump* const other = job_.find(transfer.peer);
    if (transfer.other == Presence::kAbsent && other != nullptr &&
        motion_.older[place_in_job(*other)])
      wait.later.push_back(peer);
    else if (transfer.other == Presence::kAbsent)
      wait.absent.push_back(peer);
    else if (transfer.other != Presence::kPending)
      wait.unknown.push_back(peer);
    const auto next = static_cast<std::uint32_t>(graph_.waits.size());
    graph_.waits.push_back(std::move(wait));
    const std::uint32_t own = graph_.place(job_.ranks[place.rank].rank);
    join(next, {own, transfer.entry, transfer.closing});
    if (transfer.partner != Transfer::kNone) {
      const auto peer_index = static_cast<std::size_t>(
          job_.find(transfer.peer) - job_.ranks.data());
      peer_units_[next] =
          matching_.transfers(peer_index)[transfer.partner].closing;
    }
    if (transfer.other != Presence::kPending)
      unmatched_units_.emplace(own, transfer.closing);
  }

  void join(std::uint32_t wait, const Wait::Waiter& waiter) {
    graph_.waits[wait].waiting.push_back(waiter);
    graph_.waits_of[waiter.rank].push_back(wait);
    std::uint32_t& oldest = oldest_unit_[waiter.rank];
    oldest = std::min(oldest, waiter.unit);
  }

  void order_waits() {
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> order(
        graph_.world.size());
    for (std::uint32_t w = 0; w < graph_.waits.size(); ++w)
      for (const Wait::Waiter& waiter : graph_.waits[w].waiting)
        order[waiter.rank].emplace_back(waiter.entry, w);
    for (std::uint32_t rank = 0; rank < order.size(); ++rank) {
      std::ranges::sort(order[rank]);
      for (std::size_t i = 0; i < order[rank].size(); ++i)
        graph_.waits_of[rank][i] = order[rank][i].second;
    }
  }

  // The member that is furthest behind.
  std::uint32_t furthest_behind(GroupId group) {
    const auto [found, is_new] = furthest_behind_.try_emplace(group, 0);
    if (is_new)
      found->second = graph_.place(
          std::ranges::min_element(matching_.lanes(group), {},
                                   [](const Lane& lane) {
                                     return std::pair(lane.dump == nullptr,
                                                      lane.last_enqueued);
                                   })
              ->rank);
    return found->second;
  }

  // Whether something enqueued before `unit` keeps the rank's device busy.
  bool has_older_work(std::uint32_t rank, std::uint32_t unit) const {
    return oldest_unit_[rank] < unit;
  }

  void find_targets() {
    for (std::uint32_t w = 0; w < graph_.waits.size(); ++w) {
      Wait& wait = graph_.waits[w];
      if (wait.transfer) {
        const Wait::Waiter& own = wait.waiting[0];
        const std::uint32_t peer = graph_.place(wait.transfer->peer);
        // A batch is completed when all of it is.
        if (const std::optional<std::uint32_t> unit = peer_units_[w];
            unit && (has_older_work(peer, *unit) ||
                     unmatched_units_.contains({peer, *unit})))
          wait.busy.push_back(peer);
        const bool matched = wait.absent.empty() && wait.unknown.empty();
        if (has_older_work(own.rank, own.unit) ||
            (matched && unmatched_units_.contains({own.rank, own.unit})))
          wait.busy.push_back(own.rank);
        continue;
      }
      if (crowded_.contains(w)) {
        wait.absent.push_back(furthest_behind(wait.group));
        continue;
      }
      // Whatever the dumps of its members lack.
      const bool all_joined =
          wait.sequence <= motion_.finished[wait.group.value];
      for (const Lane& lane : matching_.lanes(wait.group)) {
        const std::uint32_t rank = graph_.place(lane.rank);
        switch (presence(lane, wait.sequence)) {
          case Presence::kAbsent:
            wait.absent.push_back(rank);
            break;
          case Presence::kNoDump:
            if (!all_joined)
              wait.unknown.push_back(rank);
            break;
          case Presence::kUnknown:
            if (all_joined)
              break;
            if (!lane.dump->complete || !lane.bounded)
              wait.unknown.push_back(rank);
            else if (motion_.older[place_in_job(*lane.dump)])
              wait.later.push_back(rank);
            else
              wait.absent.push_back(rank);
            break;
          case Presence::kPassed:
            // Overwritten entries are older.
            if (!lane.dump->complete && !all_joined)
              wait.unknown.push_back(rank);
            else
              wait.done.push_back(rank);
            break;
          case Presence::kPending: {
            const Slot* const slot = lane.find(wait.sequence);
            const Slot* const first = first_wait(lane, wait.group);
            if (first == nullptr || slot->sequence < first->sequence)
              wait.done.push_back(rank);
            else if (has_older_work(rank, slot->closing))
              wait.busy.push_back(rank);
            break;
          }
          case Presence::kDone:
            wait.done.push_back(rank);
            break;
        }
      }
      // Of a group that is in no pg_config, only members with a dump are known.
      if (!job_.group(wait.group).configured && wait.absent.empty() &&
          wait.unknown.empty()) {
        const std::size_t count =
            std::min(without_dump_.size(), kMostGuesses - guesses_);
        wait.unknown.assign(
            without_dump_.begin(),
            without_dump_.begin() + static_cast<std::ptrdiff_t>(count));
        guesses_ += count;
      }
    }
  }

  void find_roots() {
    const auto ranks = static_cast<std::uint32_t>(graph_.world.size());
    std::vector<std::vector<std::uint32_t>> edges(ranks + graph_.waits.size());
    std::vector<std::vector<std::uint32_t>> oldest_edges(edges.size());
    for (std::uint32_t w = 0; w < graph_.waits.size(); ++w)
      for (Wait::Waiter& waiter : graph_.waits[w].waiting) {
        waiter.oldest = waiter.unit == oldest_unit_[waiter.rank];
        // Newer operations are only delayed by the oldest, unless a rank did
        // not join them.
        if (waiter.oldest || !graph_.waits[w].absent.empty())
          edges[waiter.rank].push_back(ranks + w);
        if (waiter.oldest)
          oldest_edges[waiter.rank].push_back(ranks + w);
      }
    std::vector<char> waited_for(edges.size(), 0);
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      for (const std::uint32_t wait : edges[rank])
        waited_for[wait] = 1;
    for (std::uint32_t w = 0; w < graph_.waits.size(); ++w) {
      edges[ranks + w] = graph_.targets(graph_.waits[w]);
      oldest_edges[ranks + w] = edges[ranks + w];
      for (const std::uint32_t rank : edges[ranks + w])
        waited_for[rank] = 1;
    }
    const Components components(edges);
    const std::vector<char> in_cycle = find_cycles(oldest_edges);
    std::vector<WaitRoot> parts(components.count());
    std::vector<std::vector<std::uint32_t>> leads_to(components.count());
    std::vector<char> wanted(components.count(), 0);
    for (std::uint32_t node = 0; node < edges.size(); ++node) {
      const std::uint32_t part = components.of(node);
      if (node < ranks)
        parts[part].ranks.push_back(node);
      else
        parts[part].waits.push_back(node - ranks);
      wanted[part] |= waited_for[node];
      for (const std::uint32_t to : edges[node])
        if (components.of(to) != part)
          leads_to[part].push_back(components.of(to));
    }
    // Components are numbered against the direction of edges, so the successors
    // of a component come before it. A component that leads only to ranks
    // without a dump is explained by them, unless it is a cycle of blocking
    // waits or a rank that did not join.
    std::vector<char> explained(components.count(), 0);
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      WaitRoot& part = parts[i];
      const bool cycle =
          leads_to[i].empty()
              ? part.ranks.size() + part.waits.size() > 1
              : std::ranges::any_of(part.ranks, [&](std::uint32_t rank) {
                  return in_cycle[rank] != 0;
                });
      const bool leads_on = std::ranges::any_of(
          leads_to[i], [&](std::uint32_t to) { return !explained[to]; });
      if (leads_on || !wanted[i])
        continue;
      if (!cycle && !leads_to[i].empty()) {
        explained[i] = 1;
        continue;
      }
      part.kind = cycle                       ? WaitRoot::Kind::kCycle
                  : part.ranks.empty()        ? WaitRoot::Kind::kStuck
                  : is_unknown(part.ranks[0]) ? WaitRoot::Kind::kUnknown
                                              : WaitRoot::Kind::kIdle;
      explained[i] = part.kind == WaitRoot::Kind::kUnknown;
      graph_.roots.push_back(std::move(part));
    }
  }

  // The nodes that can reach themselves.
  static std::vector<char> find_cycles(
      const std::vector<std::vector<std::uint32_t>>& edges) {
    const Components components(edges);
    std::vector<std::uint32_t> sizes(components.count(), 0);
    for (std::uint32_t node = 0; node < edges.size(); ++node)
      ++sizes[components.of(node)];
    std::vector<char> found(edges.size(), 0);
    for (std::uint32_t node = 0; node < edges.size(); ++node)
      found[node] = sizes[components.of(node)] > 1 ? 1 : 0;
    return found;
  }

  // No dump, or one that is truncated before that.
  bool is_unknown(std::uint32_t rank) const {
    const RankDump* const dump = job_.find(graph_.world[rank]);
    return dump == nullptr || !dump->complete;
  }

  // The members of a group are usually at few different operations. Beyond this
  // number, all wait for the one that is furthest behind; and beyond this
  // number of guesses about members of unlisted groups, no more are made.
  static constexpr std::size_t kMostPlaces = 1024;
  static constexpr std::size_t kMostGuesses = 1 << 20;

  const Matching& matching_;
  const Motion& motion_;
  const Job& job_;
  WaitGraph graph_;
  std::set<std::uint32_t> crowded_;  // waits
  std::map<GroupId, std::uint32_t> furthest_behind_;
  std::size_t guesses_ = 0;
  std::vector<std::uint32_t> without_dump_;
  std::vector<std::uint32_t> oldest_unit_;  // for each rank of the world
  std::map<std::uint32_t, std::optional<std::uint32_t>> peer_units_;
  // Ranks and their batches with an unmatched transfer.
  std::set<std::pair<std::uint32_t, std::uint32_t>> unmatched_units_;
};

}  // namespace

std::uint32_t WaitGraph::place(Rank rank) const {
  return static_cast<std::uint32_t>(std::ranges::lower_bound(world, rank) -
                                    world.begin());
}

std::vector<std::uint32_t> WaitGraph::targets(const Wait& wait) const {
  if (!wait.absent.empty())
    return wait.absent;
  if (wait.unknown.empty() && wait.busy.empty())
    return wait.later;
  std::vector<std::uint32_t> found = wait.unknown;
  found.insert(found.end(), wait.busy.begin(), wait.busy.end());
  return found;
}

std::vector<Rank> WaitGraph::waiting_for(
    std::span<const std::uint32_t> to_ranks) const {
  // Backwards, from the ranks to the waits that point to them.
  std::vector<std::vector<std::uint32_t>> pointing(world.size());
  for (std::uint32_t w = 0; w < waits.size(); ++w)
    for (const std::uint32_t rank : targets(waits[w]))
      pointing[rank].push_back(w);
  std::vector<char> rank_seen(world.size(), 0);
  std::vector<char> wait_seen(waits.size(), 0);
  std::vector<std::uint32_t> queue;
  const auto reach_wait = [&](std::uint32_t w) {
    if (std::exchange(wait_seen[w], char{1}))
      return;
    for (const Wait::Waiter& waiter : waits[w].waiting)
      if (!std::exchange(rank_seen[waiter.rank], char{1}))
        queue.push_back(waiter.rank);
  };
  std::vector<char> wanted(world.size(), 0);
  for (const std::uint32_t rank : to_ranks) {
    wanted[rank] = rank_seen[rank] = 1;
    queue.push_back(rank);
  }
  while (!queue.empty()) {
    const std::uint32_t rank = queue.back();
    queue.pop_back();
    for (const std::uint32_t w : pointing[rank])
      reach_wait(w);
  }
  std::vector<Rank> found;
  for (std::uint32_t rank = 0; rank < world.size(); ++rank)
    if (rank_seen[rank] && !wanted[rank])
      found.push_back(world[rank]);
  return found;
}

WaitGraph make_wait_graph(const Matching& matching, const Motion& motion) {
  return Maker(matching, motion).make();
}

}  // namespace postflight
