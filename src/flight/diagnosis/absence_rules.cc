// Ranks that others wait for and that wait for nobody: a host that does
// something else, or a process that is gone.
//
// A rank never joined if its dump lists all that it called, others wait in an
// operation after that, and it has nothing in progress itself. Where it left no
// dump, all that is known is that all waits end at it.
//
// What fools it: a dump from before the others', in which the rank had not come
// yet. So the wait must have lasted, or the job must seldom have looked like
// this while it moved (stands). With several such ranks one may have dumped
// early and the other be at fault, so that only one alone is accused with
// certainty. A dump that was lost on its way looks like a process that is gone.
#include <algorithm>

#include "flight/diagnosis/evidence.h"
#include "flight/diagnosis/rules.h"

namespace postflight {

std::optional<Verdict> blame_idle(const Case& facts) {
  // Whether the others are unknown in what they wait for, or absent for sure.
  std::vector<std::uint32_t> idle = roots_of(facts, WaitRoot::Kind::kIdle);
  std::erase_if(idle, [&](std::uint32_t rank) {
    return std::ranges::none_of(facts.graph.waits, [&](const Wait& wait) {
      return std::ranges::find(wait.absent, rank) != wait.absent.end();
    });
  });
  if (idle.empty())
    return std::nullopt;
  const Wait& wait = *main_wait(facts, idle);
  if (!stands(facts, wait, idle))
    return std::nullopt;
  // For one that is always late the others wait at most moments.
  if (!facts.motion.gave_up && !lasted(facts, wait))
    if (std::optional<Verdict> late = blame_straggler(facts);
        late && late->culprits == ranks_at(facts, idle))
      return late;
  Verdict verdict;
  verdict.kind = VerdictKind::kNeverJoined;
  verdict.culprits = ranks_at(facts, idle);
  tell_operation(facts, wait, verdict);
  const std::vector<Rank> waiting = facts.graph.waiting_for(idle);
  const std::size_t members = facts.matching.lanes(wait.group).size();
  // Of several, one may have dumped early and the other be at fault.
  verdict.confidence = lasted(facts, wait) && idle.size() == 1 && members > 2 &&
                               facts.job.group(wait.group).configured &&
                               facts.motion.early_count == 0
                           ? Confidence::kCertain
                           : Confidence::kLikely;
  const bool together =
      wait.transfer || std::ranges::all_of(verdict.culprits, [&](Rank rank) {
        return facts.job.group(wait.group).has(rank);
      });
  verdict.summary = fmt::format(
      "{} never {}{}; {} of {} ranks {} for {}",
      Case::ranks_text(verdict.culprits), facts.missed_text(wait),
      together ? "" : ", or what their other groups wait in", waiting.size(),
      facts.graph.world.size(), waiting.size() == 1 ? "waits" : "wait",
      idle.size() == 1 ? "it" : "them");
  add_waiting(facts, wait, verdict);
  add_last(facts, verdict.culprits, verdict);
  return verdict;
}

namespace {

// Whether all ranks wait, and for nobody but those without a dump, in an
// operation that the job is seldom asked in by chance.
bool explains_all(const Case& facts, const Wait& wait) {
  for (const WaitRoot& root : facts.graph.roots)
    if (root.kind != WaitRoot::Kind::kUnknown)
      return false;
  // Nothing is known of the past.
  if (std::ranges::any_of(facts.matching.lanes(wait.group), &Lane::only_active))
    return false;
  for (const RankDump& dump : facts.job.ranks)
    // What failed in gloo looks like what is done.
    if (dump.complete && facts.graph.idle(facts.graph.place(dump.rank)) &&
        (dump.entries.empty() ||
         facts.matching.completes(dump.entries[dump.entries.size() - 1])))
      return false;
  return !usually_waits(facts, wait) && !just_begun(facts, wait) &&
         !facts.motion.goes_on();
}

}  // namespace

std::optional<Verdict> blame_unknown(const Case& facts) {
  const std::vector<std::uint32_t> unknown =
      roots_of(facts, WaitRoot::Kind::kUnknown);
  if (unknown.empty())
    return std::nullopt;
  const Wait& wait = *main_wait(facts, unknown);
  if (!stands(facts, wait, {}) && !explains_all(facts, wait))
    return std::nullopt;
  const std::vector<Rank> waiting = facts.graph.waiting_for(unknown);
  Verdict verdict;
  verdict.kind = VerdictKind::kNoDump;
  verdict.culprits = ranks_at(facts, unknown);
  verdict.confidence = Confidence::kLikely;
  tell_operation(facts, wait, verdict);
  const std::size_t missing = facts.job.without_dump().size();
  if (std::max(unknown.size(), missing) * 2 > facts.graph.world.size()) {
    verdict.kind = VerdictKind::kInconclusive;
    verdict.culprits.clear();
    verdict.summary =
        fmt::format("ranks hang in {}, but {} of {} ranks have no dump here",
                    facts.wait_text(wait), std::max(unknown.size(), missing),
                    facts.graph.world.size());
    add_waiting(facts, wait, verdict);
    return verdict;
  }
  // A file that can't be read was written: its rank may have done its part.
  std::vector<Rank> unreadable = facts.job.with_unreadable_dump();
  std::erase_if(unreadable, [&verdict](Rank rank) {
    return !std::ranges::binary_search(verdict.culprits, rank);
  });
  if (!unreadable.empty()) {
    verdict.kind = VerdictKind::kInconclusive;
    verdict.culprits.clear();
    verdict.summary = fmt::format(
        "{} of {} ranks {} in {} for {}, but the dump{} of {} can't be read",
        waiting.size(), facts.graph.world.size(),
        waiting.size() == 1 ? "waits" : "wait", facts.wait_text(wait),
        Case::ranks_text(ranks_at(facts, unknown)),
        unreadable.size() == 1 ? "" : "s", Case::ranks_text(unreadable));
    add_waiting(facts, wait, verdict);
    return verdict;
  }
  const bool cut = std::ranges::any_of(verdict.culprits, [&](Rank rank) {
    return facts.job.find(rank) != nullptr;
  });
  verdict.summary =
      fmt::format("{} left no {}dump, and {} of {} ranks {} for {} in {}",
                  Case::ranks_text(verdict.culprits), cut ? "complete " : "",
                  waiting.size(), facts.graph.world.size(),
                  waiting.size() == 1 ? "waits" : "wait",
                  unknown.size() == 1 ? "it" : "them", facts.wait_text(wait));
  add_waiting(facts, wait, verdict);
  return verdict;
}

}  // namespace postflight
