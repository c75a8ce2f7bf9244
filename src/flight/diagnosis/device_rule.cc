#include "flight/diagnosis/rules.h"

#include <algorithm>

#include "flight/diagnosis/evidence.h"

namespace postflight {
namespace {

// Whether an operation that needs all ranks has completed on all others, which
// now wait elsewhere.
bool left_behind(const Case& facts, const Wait& wait) {
  const std::size_t members = facts.matching.lanes(wait.group).size();
  const Wait::Waiter& waiter = wait.waiting[0];
  const Entry entry =
      facts.job.find(facts.graph.world[waiter.rank])->entries[waiter.entry];
  return facts.matching.completes(entry) && facts.needs_all(wait) &&
         !wait.done.empty() &&
         wait.done.size() + wait.waiting.size() == members &&
         wait.waiting.size() * 2 <= members && !is_moving(facts, wait) &&
         std::ranges::none_of(wait.done, [&](std::uint32_t rank) {
           return facts.graph.idle(rank);
         });
}

std::vector<Rank> ranks_of(const Case& facts, const Wait& wait) {
  std::vector<Rank> ranks;
  ranks.reserve(wait.waiting.size());
  for (const Wait::Waiter& waiter : wait.waiting)
    ranks.push_back(facts.graph.world[waiter.rank]);
  return ranks;
}

}  // namespace

// With start times, a kernel that waits for its peers is started, and the one
// whose device is stalled is not. Also, if a rank recorded other completions
// after its peers completed this operation, its dump was not merely taken too
// early.
std::optional<Verdict> blame_device(const Case& facts) {
  constexpr std::int64_t kMargin = 5'000'000;
  for (const WaitRoot& root : facts.graph.roots) {
    if (root.kind != WaitRoot::Kind::kStuck)
      continue;
    const Wait& wait = facts.graph.waits[root.waits[0]];
    if (wait.transfer)
      continue;
    std::vector<Rank> started;
    std::vector<Rank> scheduled;
    std::vector<Rank> late;
    std::int64_t peers_done = 0;
    for (const Lane& lane : facts.matching.lanes(wait.group))
      if (const Slot* const slot = lane.find(wait.sequence)) {
        const Entry entry = lane.dump->entries[slot->closing];
        if (slot->done && !slot->weak && entry.retired)
          peers_done = std::max(peers_done, entry.completed);
      }
    for (const Lane& lane : facts.matching.lanes(wait.group)) {
      const Slot* const slot = lane.find(wait.sequence);
      if (slot == nullptr || slot->done)
        continue;
      const auto index =
          static_cast<std::size_t>(lane.dump - facts.job.ranks.data());
      const Entry entry = lane.dump->entries[slot->closing];
      if (!facts.matching.completes(entry))
        continue;
      if (entry.state == State::kStarted)
        started.push_back(lane.rank);
      else if (facts.matching.has_starts(index))
        scheduled.push_back(lane.rank);
      if (peers_done > 0 &&
          elapsed(peers_done, facts.matching.latest_completion(index)) >
              kMargin)
        late.push_back(lane.rank);
    }
    const bool by_start = !started.empty() && !scheduled.empty();
    if (late.empty() && left_behind(facts, wait))
      late = ranks_of(facts, wait);
    if (late.size() * 2 > facts.matching.lanes(wait.group).size())
      late.clear();
    if (!by_start && late.empty())
      continue;
    Verdict verdict;
    verdict.kind = VerdictKind::kDeviceStalled;
    verdict.culprits = by_start ? scheduled : late;
    verdict.confidence = verdict.culprits.size() == 1 ? Confidence::kCertain
                                                      : Confidence::kLikely;
    if (!by_start)
      verdict.confidence = Confidence::kLikely;
    tell_operation(facts, wait, verdict);
    verdict.summary =
        by_start
            ? fmt::format(
                  "the device of {} never started {}, in which {} "
                  "of its peers wait",
                  Case::ranks_text(verdict.culprits), facts.wait_text(wait),
                  started.size())
            : fmt::format(
                  "the device of {} did not complete {}, which its "
                  "peers completed",
                  Case::ranks_text(verdict.culprits), facts.wait_text(wait));
    add_waiting(facts, wait, verdict);
    return verdict;
  }
  return std::nullopt;
}

}  // namespace postflight
