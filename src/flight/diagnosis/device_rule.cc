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
  std::size_t started = 0;  // peers that wait for them in started kernels
};

std::optional<Stall> stall_in(const Case& facts, const Wait& wait) {
  // Completion times of one rank are compared with those of others, whose
  // watchdogs look at other moments and whose clocks were compared by that.
  constexpr std::int64_t kMargin = kWatchdogPoll;
  std::vector<Rank> started;
  std::vector<Rank> scheduled;
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
    if (entry.state == State::kStarted)
      started.push_back(lane.rank);
    else if (facts.matching.has_starts(index))
      scheduled.push_back(lane.rank);
    if (peers_done > 0 &&
        elapsed(peers_done, elapsed(facts.motion.offsets[index],
                                    facts.matching.latest_completion(index))) >
            kMargin)
      late.push_back(lane.rank);
  }
  if (!started.empty() && !scheduled.empty() && stands(facts, wait, {}))
    return Stall{&wait, std::move(scheduled), started.size()};
  if (late.empty() && left_behind(facts, wait))
    late = ranks_of(facts, wait);
  if (late.empty() || late.size() * 2 > lanes.size())
    return std::nullopt;
  return Stall{&wait, std::move(late), 0};
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
  std::optional<Stall> first;
  std::vector<Rank> culprits;
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
  verdict.summary =
      first->started > 0
          ? fmt::format(
                "the device{} of {} never started {}, in which {} wait{}",
                alone ? "" : "s", Case::ranks_text(verdict.culprits),
                facts.wait_text(wait),
                first->started == 1 ? "a peer"
                                    : fmt::format("{} peers", first->started),
                first->started == 1 ? "s" : "")
          : fmt::format(
                "the device{} of {} did not complete {}, which peers "
                "completed",
                alone ? "" : "s", Case::ranks_text(verdict.culprits),
                facts.wait_text(wait));
  add_waiting(facts, wait, verdict);
  return verdict;
}

}  // namespace postflight
