// All ranks joined, with the same arguments, and nobody is done: the network,
// the library, or a device of which no start time tells.
//
// The evidence is an operation at the end of all waits in which nobody is
// absent, and that nothing moves: no dump shows a sign of life, and the wait
// has lasted, or the job was seldom as silent. Nobody is accused.
//
// What fools it: a job that moves is in one operation on all ranks at many
// moments. Where silence is common in it, the verdict is inconclusive.
#include <algorithm>

#include "flight/diagnosis/evidence.h"
#include "flight/diagnosis/rules.h"

namespace postflight {
namespace {

// Dumps without operations prove nothing, unless they were asked for active
// ones only: then the state of the groups shows that the recorder was on.
Verdict call_empty(const Job& job) {
  const bool recorded =
      std::ranges::any_of(job.ranks, [](const RankDump& rank) {
        return std::ranges::any_of(
            rank.statuses,
            [](const GroupStatus& status) { return status.last_enqueued > 0; });
      });
  Verdict verdict;
  verdict.kind = recorded ? VerdictKind::kHealthy : VerdictKind::kInconclusive;
  if (!recorded)
    verdict.confidence = Confidence::kPossible;
  verdict.summary =
      recorded ? fmt::format(
                     "no operation of {} ranks was in progress, and the "
                     "dumps hold no others",
                     job.ranks.size())
               : fmt::format(
                     "the dumps of {} ranks hold no operation: nothing had "
                     "run yet, or the recorder is off "
                     "(TORCH_FR_BUFFER_SIZE=0)",
                     job.ranks.size());
  return verdict;
}

}  // namespace

std::optional<Verdict> call_stuck(const Case& facts) {
  const Wait* stuck = nullptr;
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
  // A job that moves can be in one operation on all ranks, too.
  const bool still = (facts.motion.alive_count == 0 || facts.motion.gave_up) &&
                     (facts.motion.longest_ns > 0 || facts.motion.gave_up
                          ? stands(facts, *stuck, {})
                          : lasted(facts, *stuck));
  verdict.kind =
      still ? VerdictKind::kAllJoinedStuck : VerdictKind::kInconclusive;
  if (!still)
    verdict.confidence = Confidence::kPossible;
  tell_operation(facts, *stuck, verdict);
  if (stuck->transfer)
    verdict.summary = fmt::format(
        "both sides of {} by rank {} have joined, but it does not complete",
        facts.wait_text(*stuck),
        facts.graph.world[stuck->waiting[0].rank].value);
  else if (stuck->done.empty())
    verdict.summary =
        fmt::format("all {} ranks joined {}, and none has completed it",
                    stuck->waiting.size(), facts.wait_text(*stuck));
  else
    verdict.summary = fmt::format(
        "{} rank{} still in {}, and {} {} completed it", stuck->waiting.size(),
        stuck->waiting.size() == 1 ? " is" : "s are", facts.wait_text(*stuck),
        stuck->done.size(), stuck->done.size() == 1 ? "has" : "have");
  return verdict;
}

Verdict call_inconclusive(const Case& facts) {
  Verdict verdict;
  verdict.kind = VerdictKind::kInconclusive;
  verdict.confidence = Confidence::kPossible;
  const Wait& wait = facts.graph.waits[0];
  tell_operation(facts, wait, verdict);
  verdict.summary =
      fmt::format("ranks wait in {}, but the dumps do not show for whom",
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
        "no operation was in progress, but {} of {} ranks have no dump here",
        missing, facts.graph.world.size());
    return verdict;
  }
  if (facts.matching.any_pending()) {
    verdict.kind = VerdictKind::kInconclusive;
    verdict.confidence = Confidence::kPossible;
    verdict.summary =
        "operations are pending, but the dumps do not show whom they wait for";
    return verdict;
  }
  if (facts.job.entry_count() == 0)
    return call_empty(facts.job);
  verdict.kind = VerdictKind::kHealthy;
  verdict.summary =
      fmt::format("all {} recorded operations of {} ranks are completed",
                  facts.job.entry_count(), facts.job.ranks.size());
  return verdict;
}

}  // namespace postflight
