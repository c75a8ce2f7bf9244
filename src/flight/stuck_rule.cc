#include "flight/rules.h"

#include <algorithm>
#include <limits>
#include <set>

#include "flight/evidence.h"

namespace postflight {
namespace {

std::int64_t number_after(std::int64_t sequence) {
  return sequence == std::numeric_limits<std::int64_t>::max() ? sequence
                                                              : sequence + 1;
}

// Ranks of a group that dump while they get on are at different places; where
// only one lags behind, it may as well be stuck.
bool is_moving(const Case& facts, const Wait& wait) {
  std::set<std::int64_t> fronts;
  bool sure = false;
  for (const Lane& lane : facts.timeline.lanes(wait.group)) {
    if (lane.dump == nullptr)
      continue;
    const Slot* const front = lane.first_pending();
    fronts.insert(front != nullptr ? front->sequence
                                   : number_after(lane.last_enqueued));
    const Slot* const slot = lane.find(wait.sequence);
    sure |= slot != nullptr && slot->done && !slot->weak &&
            facts.timeline.completes(lane.dump->entries[slot->closing]);
  }
  return sure && fronts.size() > 2;
}

}  // namespace

std::optional<Verdict> call_stuck(const Case& facts) {
  const Wait* stuck = nullptr;
  // What needs all can't be done by one and not by the others for long.
  const bool moving =
      std::ranges::any_of(facts.graph.waits, [&](const Wait& wait) {
        return !wait.transfer && facts.needs_all(wait) &&
               is_moving(facts, wait);
      });
  for (const WaitRoot& root : facts.graph.roots) {
    if (root.kind != WaitRoot::Kind::kStuck)
      continue;
    const Wait& wait = facts.graph.waits[root.waits[0]];
    const bool better = stuck == nullptr ||
                        std::tuple(stuck->done.empty(), stuck->waiting.size()) <
                            std::tuple(wait.done.empty(), wait.waiting.size());
    if (better)
      stuck = &wait;
  }
  if (stuck == nullptr)
    return std::nullopt;
  Verdict verdict;
  verdict.confidence = Confidence::kLikely;
  add_waiting(facts, *stuck, verdict);
  if (moving) {
    verdict.kind = VerdictKind::kHealthy;
    verdict.summary =
        "operations were under way, and ranks were still finishing them when "
        "they dumped";
    return verdict;
  }
  verdict.kind = VerdictKind::kAllJoinedStuck;
  tell_operation(facts, *stuck, verdict);
  verdict.summary =
      stuck->transfer
          ? fmt::format(
                "both sides of {} by rank {} are there, and it does not "
                "finish",
                facts.wait_text(*stuck),
                facts.graph.world[stuck->waiting[0].rank].value)
          : fmt::format("all {} ranks joined {}, and none has finished it",
                        stuck->waiting.size(), facts.wait_text(*stuck));
  return verdict;
}

Verdict call_inconclusive(const Case& facts) {
  Verdict verdict;
  verdict.kind = VerdictKind::kInconclusive;
  verdict.confidence = Confidence::kPossible;
  const Wait& wait = facts.graph.waits[0];
  tell_operation(facts, wait, verdict);
  verdict.summary =
      fmt::format("something waits in {}, but the dumps don't tell for whom",
                  facts.wait_text(wait));
  add_waiting(facts, wait, verdict);
  return verdict;
}

Verdict call_healthy(const Case& facts) {
  Verdict verdict;
  const std::size_t missing = facts.job.without_dump().size();
  if (missing * 4 > facts.graph.world.size()) {
    verdict.kind = VerdictKind::kInconclusive;
    verdict.confidence = Confidence::kPossible;
    verdict.summary = fmt::format(
        "nothing was under way, but {} of {} ranks have no dump here", missing,
        facts.graph.world.size());
    return verdict;
  }
  verdict.kind = VerdictKind::kHealthy;
  verdict.summary =
      fmt::format("all {} operations of {} ranks that were recorded are done",
                  facts.job.entry_count(), facts.job.ranks.size());
  return verdict;
}

}  // namespace postflight
