// One device does not do what the others have done: it never starts an
// operation that waits on them, or does not end one that has ended there.
//
// The evidence for the first are start times: a kernel that waits for its peers
// has started. For the second it is a dump that is certainly later than the end
// on the others; or one that need not be early, as its host waits where hosts
// wait for their devices, and that it is alone.
//
// What fools it: dumps from a moment before. So the others must stand still,
// and a rank whose host would have gone on is taken for one that dumped early.
#include <algorithm>
#include <span>
#include <utility>

#include "flight/diagnosis/evidence.h"
#include "flight/diagnosis/rules.h"

namespace postflight {
namespace {

bool is_early(const Case& facts, std::uint32_t rank) {
  const RankDump* const dump = facts.job.find(facts.graph.world[rank]);
  return dump != nullptr && facts.motion.early[static_cast<std::size_t>(
                                dump - facts.job.ranks.data())] != 0;
}

// Whether an operation that needs all ranks has completed on all others, which
// now wait elsewhere, as far as their dumps tell.
bool left_behind(const Case& facts, const Wait& wait) {
  const std::size_t members = facts.matching.lanes(wait.group).size();
  const Wait::Waiter& waiter = wait.waiting[0];
  const Entry entry =
      facts.job.find(facts.graph.world[waiter.rank])->entries[waiter.entry];
  return facts.matching.completes(entry) && facts.needs_all(wait) &&
         !wait.done.empty() && wait.absent.empty() && wait.busy.empty() &&
         wait.waiting.size() * 2 <= members && stands(facts, wait, {}) &&
         std::ranges::none_of(wait.done, [&](std::uint32_t rank) {
           return facts.graph.idle(rank) && !is_early(facts, rank);
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

// Whether the dump is certainly later than `ended`, by the job's clock: it has
// seen something later, or its watchdog has given up there.
bool later_than(const Case& facts, const Lane& lane, const Slot& slot,
                std::int64_t ended) {
  // What clocks may differ by that were compared by what watchdogs saw.
  constexpr std::int64_t kMargin = 6 * kWatchdogPoll;
  const auto index =
      static_cast<std::size_t>(lane.dump - facts.job.ranks.data());
  return lane.dump->entries.retired(slot.closing) ||
         elapsed(ended, elapsed(facts.motion.offsets[index],
                                facts.matching.latest(index))) > kMargin;
}

// The ranks that had not completed what peers had, certainly before them. A
// broadcast may end on some while others still wait for one whose device
// stands.
std::optional<Stall> stall_in(const Case& facts, const Wait& wait) {
  if (!facts.needs_all(wait))
    return std::nullopt;
  std::int64_t ended = 0;
  const std::span<const Lane> lanes = facts.matching.lanes(wait.group);
  for (const Lane& lane : lanes)
    if (const Slot* const slot = lane.find(wait.sequence)) {
      const Entry entry = lane.dump->entries[slot->closing];
      if (slot->done && !slot->weak && entry.retired)
        ended = std::max(ended,
                         elapsed(facts.motion.offsets[static_cast<std::size_t>(
                                     lane.dump - facts.job.ranks.data())],
                                 entry.completed));
    }
  if (ended == 0)
    return std::nullopt;
  std::vector<Rank> late;
  for (const Lane& lane : lanes) {
    const Slot* const slot = lane.find(wait.sequence);
    if (slot == nullptr || slot->done ||
        facts.motion.early[static_cast<std::size_t>(lane.dump -
                                                    facts.job.ranks.data())])
      continue;
    if (facts.matching.completes(lane.dump->entries[slot->closing]) &&
        later_than(facts, lane, *slot, ended))
      late.push_back(lane.rank);
  }
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

Verdict call_stalled(const Case& facts, const Stall& first,
                     std::vector<Rank> culprits) {
  const Wait& wait = *first.wait;
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
                  first.unstarted ? "never started" : "did not complete",
                  facts.wait_text(wait),
                  together ? "" : ", or what they wait in in other groups",
                  first.unstarted ? ", while others wait in what they started"
                                  : ", which peers completed");
  add_waiting(facts, wait, verdict);
  return verdict;
}

// The stalls that `find` sees in the waits that all have joined.
template <typename Find>
std::optional<Verdict> call_stalls(const Case& facts,
                                   std::optional<Stall> first, Find find) {
  std::vector<Rank> culprits;
  if (first)
    culprits = first->ranks;
  for (const WaitRoot& root : facts.graph.roots) {
    if (root.kind != WaitRoot::Kind::kStuck ||
        facts.graph.waits[root.waits[0]].transfer)
      continue;
    std::optional<Stall> found = find(facts, facts.graph.waits[root.waits[0]]);
    if (!found)
      continue;
    culprits.insert(culprits.end(), found->ranks.begin(), found->ranks.end());
    if (!first)
      first = std::move(found);
  }
  if (!first)
    return std::nullopt;
  return call_stalled(facts, *first, std::move(culprits));
}

}  // namespace

// A rank whose dump is certainly later than the end of an operation on the
// others, and that has not seen that end: nothing that moves looks like that.
// It needs no rank that has not come, which may have dumped early.
std::optional<Verdict> blame_lagging_device(const Case& facts) {
  return call_stalls(facts, std::nullopt, stall_in);
}

// With start times, a kernel that waits for its peers is started, and the one
// whose device is stalled is not. Without, the others have gone on from an
// operation, and one has not. All such ranks are named, whichever operations
// they stopped in.
//
// What fools it: a rank that dumped in the short time in which its peers had
// started and it had not, or before they went on. So it is never certain.
std::optional<Verdict> blame_device(const Case& facts) {
  const std::optional<Stall> first = unstarted(facts);
  std::optional<Verdict> found =
      call_stalls(facts, first, [](const Case& found_in, const Wait& wait) {
        return left_behind(found_in, wait)
                   ? std::optional(Stall{&wait, ranks_of(found_in, wait)})
                   : std::nullopt;
      });
  // Devices fail one by one; dumps are early in any number.
  if (!first && found && found->culprits.size() > 1 && !facts.motion.gave_up)
    return std::nullopt;
  // In a job that waits for one that is always late, dumps differ like that.
  if (!first && found && !facts.motion.gave_up)
    if (std::optional<Verdict> late = blame_straggler(facts))
      return late;
  return found;
}

}  // namespace postflight
