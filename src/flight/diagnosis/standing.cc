#include "flight/diagnosis/standing.h"

#include <algorithm>

namespace postflight {

std::vector<RankStanding> stand(const Case& facts, const Verdict& verdict) {
  const WaitGraph& graph = facts.graph;
  std::vector<char> absent(graph.world.size(), 0);
  for (const Wait& wait : graph.waits)
    for (const std::uint32_t rank : wait.absent)
      absent[rank] = 1;

  std::vector<RankStanding> all;
  for (std::uint32_t place = 0; place < graph.world.size(); ++place) {
    const Rank rank = graph.world[place];
    RankStanding one;
    one.rank = rank;
    const RankDump* const dump = facts.job.find(rank);
    if (dump == nullptr) {
      one.standing = Standing::kNoDump;
    } else if (!graph.waits_of[place].empty()) {
      one.standing = Standing::kWaiting;
      const Wait& oldest = graph.waits[graph.waits_of[place].front()];
      for (const Wait::Waiter& waiter : oldest.waiting)
        if (waiter.rank == place)
          one.entry = waiter.entry;
      for (const std::uint32_t target : graph.targets(oldest))
        if (target != place)
          one.waiting_for.push_back(graph.world[target]);
      std::ranges::sort(one.waiting_for);
    } else {
      one.standing = absent[place] ? Standing::kMissing : Standing::kDone;
      if (!dump->complete)
        one.standing = Standing::kUnknown;
      if (!dump->entries.empty())
        one.entry = static_cast<std::uint32_t>(dump->entries.size() - 1);
    }
    if (std::ranges::binary_search(verdict.culprits, rank))
      one.standing = traits(verdict.kind).culprits;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace postflight
