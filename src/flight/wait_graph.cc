// Hangs spread: one rank stops, its tensor-parallel peers wait for it, their
// data-parallel peers wait for those, until every group of the job is stuck.
// The rank to look at is where the waiting ends.
//
// The graph has ranks and waits. A rank points to the waits it is in, of each
// group the oldest only: what is enqueued behind that is its shadow. A wait
// points to the members that never came, or if all came, to those that still
// have older work in another group. A strongly connected part without a way
// out is a root: a single rank that waits for nothing, a wait that points to
// nobody, or a cycle.
#include "flight/wait_graph.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "flight/transfers.h"

namespace postflight {
namespace {

// Tarjan's algorithm without recursion, on nodes 0 to n-1.
class Components {
 public:
  explicit Components(const std::vector<std::vector<std::uint32_t>>& edges)
      : edges_(edges),
        index_(edges.size(), kNone),
        low_(edges.size(), 0),
        on_stack_(edges.size(), 0),
        component_(edges.size(), kNone) {
    for (std::uint32_t node = 0; node < edges.size(); ++node)
      if (index_[node] == kNone)
        visit(node);
  }

  std::uint32_t count() const { return count_; }
  std::uint32_t of(std::uint32_t node) const { return component_[node]; }

 private:
  static constexpr std::uint32_t kNone =
      std::numeric_limits<std::uint32_t>::max();

  void enter(std::uint32_t node) {
    index_[node] = low_[node] = next_++;
    stack_.push_back(node);
    on_stack_[node] = 1;
    path_.emplace_back(node, 0);
  }

  void visit(std::uint32_t start) {
    enter(start);
    while (!path_.empty()) {
      auto& [node, edge] = path_.back();
      if (edge < edges_[node].size()) {
        const std::uint32_t to = edges_[node][edge++];
        if (index_[to] == kNone)
          enter(to);  // moves path_: node and edge are not used again
        else if (on_stack_[to])
          low_[node] = std::min(low_[node], index_[to]);
        continue;
      }
      const std::uint32_t left = node;
      path_.pop_back();
      if (!path_.empty())
        low_[path_.back().first] =
            std::min(low_[path_.back().first], low_[left]);
      if (low_[left] == index_[left])
        close(left);
    }
  }

  void close(std::uint32_t root) {
    std::uint32_t node;
    do {
      node = stack_.back();
      stack_.pop_back();
      on_stack_[node] = 0;
      component_[node] = count_;
    } while (node != root);
    ++count_;
  }

  const std::vector<std::vector<std::uint32_t>>& edges_;
  std::vector<std::uint32_t> index_;
  std::vector<std::uint32_t> low_;
  std::vector<char> on_stack_;
  std::vector<std::uint32_t> component_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::pair<std::uint32_t, std::size_t>> path_;
  std::uint32_t next_ = 0;
  std::uint32_t count_ = 0;
};

class Maker {
 public:
  explicit Maker(const Timeline& timeline)
      : timeline_(timeline), job_(timeline.job()) {}

  WaitGraph make() && {
    graph_.world = job_.world();
    graph_.waits_of.resize(graph_.world.size());
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
      for (const Lane& lane : timeline_.lanes({g})) {
        const Slot* const slot = lane.first_pending();
        if (slot == nullptr)
          continue;
        const auto next = static_cast<std::uint32_t>(graph_.waits.size());
        const auto [found, is_new] =
            by_sequence.try_emplace(slot->sequence, next);
        if (is_new)
          graph_.waits.push_back(
              {.group = {g}, .sequence = slot->sequence, .transfer = {}});
        join(found->second, graph_.place(lane.rank), slot->entry);
      }
    }
  }

  void add_transfers() {
    for (const OpenTransfer& open : find_open_transfers(timeline_)) {
      // Its other side is done, so this one is only late to be seen as done.
      if (open.peer == Presence::kDone)
        continue;
      Wait wait = {.group = open.transfer.group,
                   .sequence = 0,
                   .transfer = open.transfer};
      const std::uint32_t peer = graph_.place(open.transfer.peer);
      if (open.peer == Presence::kAbsent)
        wait.absent.push_back(peer);
      else if (open.peer == Presence::kUnknown)
        wait.unknown.push_back(peer);
      const auto next = static_cast<std::uint32_t>(graph_.waits.size());
      graph_.waits.push_back(std::move(wait));
      join(next, graph_.place(job_.ranks[open.rank_index].rank),
           open.transfer.entry);
    }
  }

  void join(std::uint32_t wait, std::uint32_t rank, std::uint32_t entry) {
    graph_.waits[wait].waiting.push_back({rank, entry});
    graph_.waits_of[rank].push_back(wait);
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

  // The oldest thing that keeps a rank's device busy.
  bool has_older_work(std::uint32_t rank, std::uint32_t wait) const {
    return !graph_.waits_of[rank].empty() &&
           graph_.waits_of[rank].front() != wait;
  }

  void find_targets() {
    for (std::uint32_t w = 0; w < graph_.waits.size(); ++w) {
      Wait& wait = graph_.waits[w];
      if (wait.transfer) {
        const std::uint32_t peer = graph_.place(wait.transfer->peer);
        if (wait.absent.empty() && wait.unknown.empty() &&
            peer_has_older_work(wait, peer))
          wait.busy.push_back(peer);
        continue;
      }
      for (const Lane& lane : timeline_.lanes(wait.group)) {
        const std::uint32_t rank = graph_.place(lane.rank);
        switch (presence(lane, wait.sequence)) {
          case Presence::kAbsent:
            wait.absent.push_back(rank);
            break;
          case Presence::kUnknown:
            // What a ring has overwritten was long before.
            if (lane.dump == nullptr || !lane.dump->complete)
              wait.unknown.push_back(rank);
            else
              wait.done.push_back(rank);
            break;
          case Presence::kPending:
            if (has_older_work(rank, w))
              wait.busy.push_back(rank);
            break;
          case Presence::kDone:
            wait.done.push_back(rank);
            break;
        }
      }
    }
  }

  // The peer of a transfer that both sides posted: is it held up by something
  // else? Its own side of the transfer is not that.
  bool peer_has_older_work(const Wait& wait, std::uint32_t peer) const {
    if (graph_.waits_of[peer].empty())
      return false;
    const Wait& oldest = graph_.waits[graph_.waits_of[peer].front()];
    const bool other_side =
        oldest.transfer && oldest.group == wait.group &&
        oldest.transfer->send != wait.transfer->send &&
        graph_.place(oldest.transfer->peer) == wait.waiting[0].rank;
    return !other_side;
  }

  void find_roots() {
    const auto ranks = static_cast<std::uint32_t>(graph_.world.size());
    std::vector<std::vector<std::uint32_t>> edges(ranks + graph_.waits.size());
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      for (const std::uint32_t wait : graph_.waits_of[rank])
        edges[rank].push_back(ranks + wait);
    std::vector<char> waited_for(edges.size(), 0);
    for (std::uint32_t w = 0; w < graph_.waits.size(); ++w) {
      edges[ranks + w] = graph_.targets(graph_.waits[w]);
      waited_for[ranks + w] = 1;
      for (const std::uint32_t rank : edges[ranks + w])
        waited_for[rank] = 1;
    }
    const Components components(edges);
    std::vector<char> leaves(components.count(), 0);
    std::vector<char> wanted(components.count(), 0);
    for (std::uint32_t node = 0; node < edges.size(); ++node) {
      wanted[components.of(node)] |= waited_for[node];
      for (const std::uint32_t to : edges[node])
        leaves[components.of(node)] |= components.of(to) != components.of(node);
    }
    std::map<std::uint32_t, WaitRoot> roots;
    for (std::uint32_t node = 0; node < edges.size(); ++node) {
      const std::uint32_t component = components.of(node);
      if (leaves[component] || !wanted[component])
        continue;
      WaitRoot& root = roots[component];
      if (node < ranks)
        root.ranks.push_back(node);
      else
        root.waits.push_back(node - ranks);
    }
    for (auto& [component, root] : roots) {
      if (root.ranks.empty())
        root.kind = WaitRoot::Kind::kStuck;
      else if (!root.waits.empty())
        root.kind = WaitRoot::Kind::kCycle;
      else
        root.kind = job_.find(graph_.world[root.ranks[0]]) == nullptr ||
                            !job_.find(graph_.world[root.ranks[0]])->complete
                        ? WaitRoot::Kind::kUnknown
                        : WaitRoot::Kind::kIdle;
      graph_.roots.push_back(std::move(root));
    }
  }

  const Timeline& timeline_;
  const Job& job_;
  WaitGraph graph_;
};

}  // namespace

std::uint32_t WaitGraph::place(Rank rank) const {
  return static_cast<std::uint32_t>(std::ranges::lower_bound(world, rank) -
                                    world.begin());
}

std::vector<std::uint32_t> WaitGraph::targets(const Wait& wait) const {
  std::vector<std::uint32_t> found = wait.absent;
  found.insert(found.end(), wait.unknown.begin(), wait.unknown.end());
  return found.empty() ? wait.busy : found;
}

std::vector<Rank> WaitGraph::waiting_for(
    std::span<const std::uint32_t> to_ranks,
    std::span<const std::uint32_t> to_waits) const {
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
  for (const std::uint32_t rank : to_ranks) {
    rank_seen[rank] = 1;
    queue.push_back(rank);
  }
  for (const std::uint32_t w : to_waits)
    reach_wait(w);
  while (!queue.empty()) {
    const std::uint32_t rank = queue.back();
    queue.pop_back();
    for (const std::uint32_t w : pointing[rank])
      reach_wait(w);
  }
  std::vector<Rank> found;
  for (std::uint32_t rank = 0; rank < world.size(); ++rank)
    if (rank_seen[rank] && std::ranges::find(to_ranks, rank) == to_ranks.end())
      found.push_back(world[rank]);
  return found;
}

WaitGraph make_wait_graph(const Timeline& timeline) {
  return Maker(timeline).make();
}

}  // namespace postflight
