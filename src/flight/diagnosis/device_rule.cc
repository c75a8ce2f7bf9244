#include "flight/diagnosis/rules.h"

#include <algorithm>
#include <span>
#include <utility>

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
         wait.waiting.size() * 2 <= members && stands(facts, wait, {}) &&
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

// The ranks of a wait whose devices are stalled.
struct Stall {
  const Wait* wait = nullptr;
  std::vector<Rank> ranks;
  bool unstarted = false;  // else they did not end
};

std::optional<Stall> stall_in(const Case& facts, const Wait& wait) {
  // Completion times of one rank are compared with those of others, whose
  // watchdogs look at other moments and whose clocks were compared by that.
  constexpr std::int64_t kMargin = kWatchdogPoll;
  std::vector<Rank> late;
  std::int64_t peers_done = 0;
  const std::span<const Lane> lanes = facts.matching.lanes(wait.group);
  for (const Lane& lane : lanes)
    if (const Slot* const slot = lane.find(wait.sequence)) {
      const Entry entry = lane.dump->entries[slot->closing];
      if (slot->done && !slot->weak && entry.retired)
        peers_done = std::max(
            peers_done, elapsed(facts.motion.offsets[static_cast<std::size_t>(
                                    lane.dump - facts.job.ranks.data())],
                                entry.completed));
    }
  for (const Lane& lane : lanes) {
    const Slot* const slot = lane.find(wait.sequence);
    if (slot == nullptr || slot->done)
      continue;
    const auto index =
        static_cast<std::size_t>(lane.dump - facts.job.ranks.data());
    if (facts.motion.early[index])
      continue;
    const Entry entry = lane.dump->entries[slot->closing];
    if (!facts.matching.completes(entry))
      continue;
    if (peers_done > 0 &&
        elapsed(peers_done, elapsed(facts.motion.offsets[index],
                                    facts.matching.latest_completion(index))) >
            kMargin)
      late.push_back(lane.rank);
  }
  if (late.empty() && left_behind(facts, wait))
    late = ranks_of(facts, wait);
  if (late.empty() || late.size() * 2 > lanes.size())
    return std::nullopt;
  return Stall{&wait, std::move(late)};
}

// The ranks whose oldest operation has not started, though they record when
// operations start, while that of others has. A kernel that waits for its peers
// is started, so an earlier one keeps theirs.
std::optional<Stall> unstarted(const Case& facts) {
  std::vector<Rank> ranks;
  const Wait* wait = nullptr;
  bool peers_stand = false;
  for (std::uint32_t rank = 0; rank < facts.graph.world.size(); ++rank) {
    if (facts.graph.idle(rank))
      continue;
    const RankDump& dump = *facts.job.find(facts.graph.world[rank]);
    const auto index = static_cast<std::size_t>(&dump - facts.job.ranks.data());
    if (facts.motion.early[index] || !facts.matching.has_starts(index))
      continue;
    for (const std::uint32_t w : facts.graph.waits_of[rank]) {
      const Wait& own = facts.graph.waits[w];
      const auto waiter =
          std::ranges::find(own.waiting, rank, &Wait::Waiter::rank);
      if (!waiter->oldest)
        continue;
      if (dump.entries.state(waiter->unit) == State::kStarted) {
        peers_stand = peers_stand || stands(facts, own, {});
      } else if (dump.entries.state(waiter->unit) == State::kScheduled) {
        ranks.push_back(dump.rank);
        if (wait == nullptr || own.waiting.size() > wait->waiting.size())
          wait = &own;
      }
      break;
    }
  }
  if (ranks.empty() || !peers_stand)
    return std::nullopt;
  return Stall{wait, std::move(ranks), true};
}

}  // namespace

// With start times, a kernel that waits for its peers is started, and the one
// whose device is stalled is not. Also, if a rank recorded other completions
// after its peers completed this operation, its dump was not merely taken too
// early. All such ranks are named, whichever operations they stopped in.
//
// What fools it: a rank that dumped in the short time in which its peers had
// started and it had not. So it is never certain.
std::optional<Verdict> blame_device(const Case& facts) {
  std::optional<Stall> first = unstarted(facts);
  std::vector<Rank> culprits;
  if (first)
    culprits = first->ranks;
  for (const WaitRoot& root : facts.graph.roots) {
    if (root.kind != WaitRoot::Kind::kStuck ||
        facts.graph.waits[root.waits[0]].transfer)
      continue;
    std::optional<Stall> found =
        stall_in(facts, facts.graph.waits[root.waits[0]]);
    if (!found)
      continue;
    culprits.insert(culprits.end(), found->ranks.begin(), found->ranks.end());
    if (!first)
      first = std::move(found);
  }
  if (!first)
    return std::nullopt;
  const Wait& wait = *first->wait;
  Verdict verdict;
  verdict.kind = VerdictKind::kDeviceStalled;
  std::ranges::sort(culprits);
  culprits.erase(std::unique(culprits.begin(), culprits.end()), culprits.end());
  verdict.culprits = std::move(culprits);
  const bool alone = verdict.culprits.size() == 1;
  verdict.confidence = Confidence::kLikely;
  tell_operation(facts, wait, verdict);
  const bool together = std::ranges::all_of(verdict.culprits, [&](Rank rank) {
    return std::ranges::count(wait.waiting, facts.graph.place(rank),
                              &Wait::Waiter::rank) > 0;
  });
  verdict.summary =
      fmt::format("the device{} of {} {} {}{}{}", alone ? "" : "s",
                  Case::ranks_text(verdict.culprits),
                  first->unstarted ? "never started" : "did not complete",
                  facts.wait_text(wait),
                  together ? "" : ", or what they wait in in other groups",
                  first->unstarted ? ", while others wait in what they started"
                                   : ", which peers completed");
  add_waiting(facts, wait, verdict);
  return verdict;
}

}  // namespace postflight
