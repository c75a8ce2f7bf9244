// The rules are tried in this order, and the first that applies wins:
//
//   1. argument mismatch, wrong group: the cause of a hang that comes later
//   2. in progress: the job moved between its dumps, so that together they show
//      no single moment
//   3. stalled device: it certainly did not complete what its peers did
//   4. never joined: ranks that wait for nothing while others wait for them
//      stalled device: it did not start or complete what its peers did
//   5. cycle: ranks that wait for each other
//   6. no dump: ranks without one that others wait for
//   7. all joined, none done: no rank is at fault
//
// In a job that moved or has no operation in progress, a rank that is always
// late is a straggler; with nothing in progress the job is else healthy. A rank
// that only waits is never accused.
#include "flight/diagnosis/diagnosis.h"

#include <algorithm>
#include <utility>

#include "flight/diagnosis/case.h"
#include "flight/diagnosis/proof.h"
#include "flight/diagnosis/rules.h"

namespace postflight {
namespace {

Verdict judge(const Case& facts) {
  if (facts.graph.waits.empty()) {
    if (std::optional<Verdict> verdict = blame_straggler(facts))
      return *std::move(verdict);
    return call_healthy(facts);
  }
  for (const auto rule : {blame_divergence, blame_unequal_transfer,
                          call_in_progress, blame_lagging_device, blame_idle,
                          blame_device, blame_cycle, blame_unknown, call_stuck})
    if (std::optional<Verdict> verdict = rule(facts)) {
      if (verdict->kind != VerdictKind::kInconclusive)
        return *std::move(verdict);
      break;
    }
  // Where nothing shows a hang, the job may move, and wait for who is always
  // late.
  if (std::optional<Verdict> late = blame_straggler(facts))
    return *std::move(late);
  if (std::optional<Verdict> verdict = blame_unknown(facts))
    return *std::move(verdict);
  if (std::optional<Verdict> verdict = call_stuck(facts))
    return *std::move(verdict);
  return call_inconclusive(facts);
}

// Faults that the verdict does not explain: a rule applies to other ranks, too.
// What one rule finds is no consequence of what another does, for each names
// only the ends of chains of waits; but where calls differ, any rank that they
// concern may have stopped because of that.
void add_further_faults(const Case& facts, Verdict& verdict) {
  if (verdict.culprits.empty() || !verdict.stands() ||
      verdict.kind == VerdictKind::kStraggler)
    return;
  std::vector<Rank> named = verdict.culprits;
  std::vector<Rank> concerned;
  for (const Divergence& divergence : facts.divergences)
    concerned.insert(concerned.end(), divergence.disagreement.suspects.begin(),
                     divergence.disagreement.suspects.end());
  for (const auto rule : {blame_divergence, blame_unequal_transfer, blame_idle,
                          blame_device, blame_unknown}) {
    std::optional<Verdict> found = rule(facts);
    if (!found || found->culprits.empty() || found->kind == verdict.kind ||
        found->kind == VerdictKind::kInconclusive)
      continue;
    const bool divergence = rule == blame_divergence;
    if (std::ranges::any_of(found->culprits, [&](Rank rank) {
          return std::ranges::count(named, rank) > 0 ||
                 (!divergence && std::ranges::count(concerned, rank) > 0);
        }))
      continue;
    named.insert(named.end(), found->culprits.begin(), found->culprits.end());
    verdict.also.push_back({found->kind, std::move(found->culprits),
                            std::move(found->summary),
                            std::move(found->evidence)});
  }
}

// The state of each rank of the world, given the verdict.
std::vector<RankStatus> rank_statuses(const Case& facts,
                                      const Verdict& verdict) {
  const WaitGraph& graph = facts.graph;
  std::vector<char> absent(graph.world.size(), 0);
  for (const Wait& wait : graph.waits)
    for (const std::uint32_t rank : wait.absent)
      absent[rank] = 1;

  const std::vector<Rank> unreadable = facts.job.with_unreadable_dump();
  std::vector<RankStatus> all;
  for (std::uint32_t place = 0; place < graph.world.size(); ++place) {
    const Rank rank = graph.world[place];
    RankStatus one;
    one.rank = rank;
    const RankDump* const dump = facts.job.find(rank);
    one.stale = dump != nullptr && facts.motion.early[static_cast<std::size_t>(
                                       dump - facts.job.ranks.data())] != 0;
    if (dump == nullptr) {
      one.state = std::ranges::binary_search(unreadable, rank)
                      ? RankState::kUnknown
                      : RankState::kNoDump;
    } else if (!graph.waits_of[place].empty()) {
      one.state = RankState::kWaiting;
      const Wait& oldest = graph.waits[graph.waits_of[place].front()];
      for (const Wait::Waiter& waiter : oldest.waiting)
        if (waiter.rank == place)
          one.entry = waiter.entry;
      for (const std::uint32_t target : graph.targets(oldest))
        if (target != place)
          one.waiting_for.push_back(graph.world[target]);
      std::ranges::sort(one.waiting_for);
    } else {
      one.state = absent[place] ? RankState::kMissing : RankState::kDone;
      if (!dump->complete)
        one.state = RankState::kUnknown;
      if (!dump->entries.empty())
        one.entry = static_cast<std::uint32_t>(dump->entries.size() - 1);
    }
    if (std::ranges::binary_search(verdict.culprits, rank))
      one.state = traits(verdict.kind).culprits;
    for (const FurtherFault& other : verdict.also)
      if (std::ranges::binary_search(other.culprits, rank))
        one.state = traits(other.kind).culprits;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

Verdict diagnose(const Matching& matching, const Context& context) {
  const Case facts(matching, context);
  Verdict verdict = judge(facts);
  add_further_faults(facts, verdict);
  verdict.pending = matching.any_pending();
  verdict.why = prove(facts, verdict);
  if (verdict.confidence == Confidence::kCertain && !is_proven(verdict))
    verdict.confidence = Confidence::kLikely;
  verdict.ranks = rank_statuses(facts, verdict);
  add_findings(facts, verdict);
  return verdict;
}

}  // namespace postflight
