#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/units.h"
#include "flight/diagnosis/evidence.h"
#include "flight/diagnosis/rules.h"

namespace postflight {
namespace {

bool has_moved(const Case& facts) {
  const Motion& motion = facts.motion;
  // A rank that was terminated or raised dumps before the others give up, and
  // can be alive then; it is the only one.
  // In a large job a few may be asked early.
  if (motion.alive_count > 1 && motion.alive_count * 64 > motion.complete)
    return true;
  // A fault leaves at most a minority behind.
  return motion.behind_count * 2 >= motion.complete &&
         motion.stale_count < motion.complete;
}

}  // namespace

std::optional<Verdict> call_in_progress(const Case& facts) {
  if (!has_moved(facts))
    return std::nullopt;
  // Who is always late is so in a job that moves, too.
  if (std::optional<Verdict> late = blame_straggler(facts))
    return late;
  const Motion& motion = facts.motion;
  Verdict verdict;
  verdict.kind = VerdictKind::kInProgress;
  verdict.confidence =
      motion.stale_count > 0 ? Confidence::kCertain : Confidence::kLikely;
  verdict.summary =
      motion.stale_count > 0
          ? fmt::format(
                "the job moved while its ranks dumped: {} of {} dumps "
                "are older than the others",
                motion.stale_count, facts.job.ranks.size())
          : fmt::format(
                "the job was moving when its ranks dumped: {} of {} "
                "had just finished an operation",
                motion.alive_count, facts.job.ranks.size());
  if (motion.stale_count == 0 && motion.alive_count == 0)
    verdict.summary = fmt::format(
        "the job moved while its ranks dumped: {} of {} had not finished what "
        "others had",
        motion.behind_count, facts.job.ranks.size());
  const Wait* widest = &facts.graph.waits[0];
  for (const Wait& wait : facts.graph.waits)
    if (wait.waiting.size() > widest->waiting.size())
      widest = &wait;
  add_waiting(facts, *widest, verdict);
  if (motion.stale_for_ns > 0)
    verdict.findings.push_back(
        {"moved", Severity::kNote,
         fmt::format(
             "the last sign of life in the oldest dump is {} before "
             "that in the newest",
             human_duration(std::chrono::nanoseconds(motion.stale_for_ns))),
         ""});
  return verdict;
}

}  // namespace postflight
