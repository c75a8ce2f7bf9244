// The dumps show different moments of a job that goes on: half of them are
// older than what others have finished, or as many ranks as usual had just
// finished something. Both are counted by Motion.
//
// What fools it: a hang in which most ranks were asked for their dumps before
// it began. Late dumps of the same ranks would show it, so that the advice is
// to dump again.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/units.h"
#include "flight/diagnosis/evidence.h"
#include "flight/diagnosis/rules.h"

namespace postflight {

std::optional<Verdict> call_in_progress(const Case& facts) {
  if (!facts.motion.moved())
    return std::nullopt;
  // Who is always late is so in a job that moves, too.
  if (std::optional<Verdict> late = blame_straggler(facts))
    return late;
  const Motion& motion = facts.motion;
  Verdict verdict;
  verdict.kind = VerdictKind::kInProgress;
  verdict.confidence =
      motion.older_count > 0 ? Confidence::kCertain : Confidence::kLikely;
  const std::size_t behind = motion.early_count + motion.lagging_count;
  if (behind > 0)
    verdict.summary = fmt::format(
        "the job moved while its ranks dumped: {} of {} dumps are older than "
        "what others have finished",
        behind, facts.job.ranks.size());
  else
    verdict.summary = fmt::format(
        "the job was moving when its ranks dumped: {} of {} had just finished "
        "an operation",
        motion.alive_count, facts.job.ranks.size());
  const Wait* widest = &facts.graph.waits[0];
  for (const Wait& wait : facts.graph.waits)
    if (wait.waiting.size() > widest->waiting.size())
      widest = &wait;
  add_waiting(facts, *widest, verdict);
  if (motion.apart_ns > 0)
    verdict.findings.push_back(
        {"moved", Severity::kNote,
         fmt::format("the last sign of life in the oldest dump is {} before "
                     "that in the newest",
                     human_duration(std::chrono::nanoseconds(motion.apart_ns))),
         ""});
  return verdict;
}

}  // namespace postflight
