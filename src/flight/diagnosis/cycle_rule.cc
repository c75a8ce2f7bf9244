// Ranks that wait for each other: each is in an operation that the next one has
// not come to, because it is in another one. Somebody used two groups in
// another order, called on the wrong group, or left out a transfer.
//
// The evidence is a cycle of oldest waits. Who broke the order is not in it;
// what tells is, first, a call that stands alone on one group and is missing,
// from the same line, on another; then a transfer that one rank has made less
// often than the ranks of its stage in other pipelines; then the smaller side.
// Between sides of equal size nobody is accused alone.
//
// What fools it: batches of transfers that are dumped a moment apart look like
// a cycle, so that one with transfers must stand still. A ring that has wrapped
// hides the transfer that was left out: the last unmatched one is named then.
#include <algorithm>
#include <map>

#include "flight/diagnosis/evidence.h"
#include "flight/diagnosis/rules.h"

namespace postflight {
namespace {

// The ranks of a cycle, by the wait that blocks each.
std::map<std::uint32_t, std::vector<std::uint32_t>> sides_of(
    const Case& facts, const WaitRoot& root) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> sides;
  for (const std::uint32_t rank : root.ranks)
    sides[facts.graph.waits_of[rank].front()].push_back(rank);
  return sides;
}

// A rank that made a call on one group which another group waits for.
struct Stray {
  std::uint32_t rank = 0;  // its index in WaitGraph::world
  const Wait* used = nullptr;
  const Wait* meant = nullptr;
};

std::vector<Stray> strays_of(const Case& facts, const WaitRoot& root) {
  std::vector<Stray> strays;
  for (const std::uint32_t rank : root.ranks) {
    const Wait& wait = facts.graph.waits[facts.graph.waits_of[rank].front()];
    if (wait.transfer || wait.waiting.size() > 1)
      continue;
    const Entry entry =
        facts.job.find(facts.graph.world[rank])->entries[wait.waiting[0].entry];
    // Without stacks, many operations look the same; but an operation that none
    // of many others joined is suspicious by itself.
    if (entry.stack == StackId{} && wait.absent.size() < 2)
      continue;
    if (const Wait* const meant =
            meant_for(facts, facts.graph.world[rank], entry, wait.group))
      strays.push_back({rank, &wait, meant});
  }
  return strays;
}

// One side of a kind of transfer: which member of its group sends to or
// receives from which other. Parallel pipelines have the same kinds.
struct TransferKind {
  std::int32_t own = 0;
  std::int32_t peer = 0;
  std::size_t members = 0;
  bool send = false;

  bool operator==(const TransferKind&) const = default;
};

TransferKind kind_of(const Job& job, GroupId id, Rank own, Rank peer,
                     bool send) {
  const Group& group = job.group(id);
  return {group.place(own), group.place(peer), group.members.size(), send};
}

// A rank's progress with one kind of transfer when it joins a collective. As a
// batch has a single sequence number, its transfers are also counted if the
// ring reaches back to the previous collective.
struct TransferProgress {
  std::int64_t last_number = 0;
  std::optional<std::int64_t> since_collective;
};

std::optional<TransferProgress> progress_of(const Case& facts,
                                            const TransferKind& kind,
                                            std::uint32_t rank,
                                            const Wait& held) {
  const Rank own = facts.graph.world[rank];
  const RankDump* const dump = facts.job.find(own);
  const Lane* const lane = facts.matching.lane(held.group, own);
  if (dump == nullptr || lane == nullptr)
    return std::nullopt;
  const Slot* const before = lane->find(held.sequence - 1);
  TransferProgress progress;
  std::int64_t count = 0;
  const auto index = static_cast<std::size_t>(dump - facts.job.ranks.data());
  for (const Transfer& transfer : facts.matching.transfers(index)) {
    if (kind_of(facts.job, transfer.group, own, transfer.peer, transfer.send) !=
        kind)
      continue;
    progress.last_number = dump->entries.p2p_sequence(transfer.entry);
    count += before != nullptr && transfer.entry > before->entry ? 1 : 0;
  }
  if (before != nullptr)
    progress.since_collective = count;
  return progress;
}

// Whether the rank that is absent from a transfer joined its current collective
// with fewer such transfers than most ranks at the same stage of other
// pipelines. It then skipped one, and will not catch up.
bool left_one_out(const Case& facts, const Wait& unmatched) {
  constexpr std::size_t kMostCompared = 64;
  const std::uint32_t absent = unmatched.absent[0];
  if (facts.graph.waits_of[absent].empty())
    return false;
  const Wait& held = facts.graph.waits[facts.graph.waits_of[absent].front()];
  if (held.transfer)
    return false;
  const Rank missed = facts.graph.world[absent];
  const Rank waiting = facts.graph.world[unmatched.waiting[0].rank];
  const TransferKind kind = kind_of(facts.job, unmatched.group, missed, waiting,
                                    !unmatched.transfer->send);
  const std::optional<TransferProgress> own =
      progress_of(facts, kind, absent, held);
  std::size_t compared = 0;
  std::size_t ahead = 0;
  for (const Wait::Waiter& waiter : held.waiting) {
    if (compared == kMostCompared)
      break;
    const std::optional<TransferProgress> other =
        progress_of(facts, kind, waiter.rank, held);
    if (waiter.rank == absent || !own || !other || other->last_number == 0)
      continue;
    ++compared;
    ahead += own->last_number < other->last_number ||
                     (own->since_collective && other->since_collective &&
                      *own->since_collective < *other->since_collective)
                 ? 1
                 : 0;
  }
  return ahead * 2 > compared;
}

// Of the unmatched transfers of a cycle, the one that was skipped; the others
// are blocked by it.
const Wait* find_unmatched(const Case& facts, const WaitRoot& cycle) {
  constexpr std::size_t kMostTried = 256;
  const Wait* last = nullptr;
  std::size_t tried = 0;
  for (const std::uint32_t w : cycle.waits) {
    const Wait& wait = facts.graph.waits[w];
    if (!wait.transfer || wait.absent.empty() || !wait.waiting[0].oldest)
      continue;
    last = &wait;
    if (tried++ < kMostTried && left_one_out(facts, wait))
      return last;
  }
  return last;
}

std::string other_order_text(const Case& facts,
                             const std::vector<Rank>& culprits,
                             const Wait& theirs, const Wait& others) {
  return fmt::format(
      "{} is in {} while the others wait for it in {}: it used the groups in a "
      "different order",
      Case::ranks_text(culprits), facts.wait_text(theirs),
      facts.wait_text(others));
}

Verdict blame_stray(const Case& facts, const Stray& stray) {
  Verdict verdict;
  verdict.kind = VerdictKind::kOrderMismatch;
  verdict.culprits = ranks_at(facts, {stray.rank});
  const std::size_t members = facts.matching.lanes(stray.meant->group).size();
  verdict.confidence = stray.meant->waiting.size() * 2 > members
                           ? Confidence::kCertain
                           : Confidence::kLikely;
  tell_operation(facts, *stray.meant, verdict);
  if (is_usual_there(facts, verdict.culprits[0], *stray.used)) {
    verdict.summary =
        other_order_text(facts, verdict.culprits, *stray.used, *stray.meant);
  } else {
    verdict.summary = fmt::format(
        "{} called {} on {} instead of {}", Case::ranks_text(verdict.culprits),
        facts.operation_text(*stray.used), facts.group_text(stray.used->group),
        facts.group_text(stray.meant->group));
    verdict.findings.push_back(
        {"wrong_group", Severity::kError, verdict.summary, ""});
  }
  add_waiting(facts, *stray.meant, verdict);
  add_waiting(facts, *stray.used, verdict);
  return verdict;
}

// An unmatched transfer between ranks that continued with something else.
Verdict blame_unmatched(const Case& facts, const Wait& unmatched) {
  Verdict verdict;
  verdict.kind = VerdictKind::kPointToPoint;
  verdict.culprits = ranks_at(facts, unmatched.absent);
  verdict.confidence = Confidence::kLikely;
  // If the other side is blocked by a transfer with this same rank, either of
  // them may have skipped one.
  const std::uint32_t own = unmatched.waiting[0].rank;
  const Wait& theirs =
      facts.graph.waits[facts.graph.waits_of[unmatched.absent[0]].front()];
  if (theirs.transfer && facts.graph.place(theirs.transfer->peer) == own) {
    verdict.culprits.push_back(facts.graph.world[own]);
    std::ranges::sort(verdict.culprits);
    verdict.confidence = Confidence::kPossible;
  }
  tell_operation(facts, unmatched, verdict);
  verdict.summary =
      fmt::format("{} never {}", Case::ranks_text(verdict.culprits),
                  facts.missed_text(unmatched));
  add_waiting(facts, unmatched, verdict);
  add_last(facts, verdict.culprits, verdict);
  return verdict;
}

// The side with fewer ranks is at fault; between sides of equal size, it is
// unknown.
std::optional<Verdict> blame_order(const Case& facts, const WaitRoot& cycle) {
  const auto sides = sides_of(facts, cycle);
  if (sides.size() < 2)
    return std::nullopt;
  const auto most = std::ranges::max_element(
      sides, {}, [](const auto& side) { return side.second.size(); });
  const bool clear = most->second.size() * 2 > cycle.ranks.size();
  std::vector<std::uint32_t> odd;
  for (const auto& [wait, ranks] : sides)
    if (!clear || wait != most->first)
      odd.insert(odd.end(), ranks.begin(), ranks.end());

  Verdict verdict;
  verdict.kind = VerdictKind::kOrderMismatch;
  verdict.culprits = ranks_at(facts, odd);
  verdict.confidence = clear && odd.size() == 1 ? Confidence::kCertain
                       : clear                  ? Confidence::kLikely
                                                : Confidence::kPossible;
  const Wait& main = facts.graph.waits[most->first];
  tell_operation(facts, main, verdict);
  const Wait& other =
      facts.graph.waits[std::ranges::find_if(sides, [&](const auto& side) {
                          return side.first != most->first;
                        })->first];
  verdict.summary =
      clear ? other_order_text(facts, verdict.culprits, other, main)
            : fmt::format("{} wait for each other in {} and {}",
                          Case::ranks_text(verdict.culprits),
                          facts.wait_text(main), facts.wait_text(other));
  for (const std::uint32_t w : cycle.waits)
    add_waiting(facts, facts.graph.waits[w], verdict);
  return verdict;
}

}  // namespace

std::optional<Verdict> blame_cycle(const Case& facts) {
  const WaitRoot* cycle = nullptr;
  for (const WaitRoot& root : facts.graph.roots)
    if (root.kind == WaitRoot::Kind::kCycle &&
        (cycle == nullptr || root.ranks.size() > cycle->ranks.size()))
      cycle = &root;
  if (cycle == nullptr)
    return std::nullopt;
  const std::vector<Stray> strays = strays_of(facts, *cycle);
  if (strays.size() == 1)
    return blame_stray(facts, strays[0]);
  // Batches that were dumped a moment apart look as if they waited for each
  // other; calls of collectives in two orders are wrong at any time.
  const bool transfers =
      std::ranges::any_of(cycle->waits, [&](std::uint32_t w) {
        return facts.graph.waits[w].transfer.has_value();
      });
  const Wait& wait = facts.graph.waits[cycle->waits[0]];
  if (transfers && !stands(facts, wait, {}))
    return std::nullopt;
  if (const Wait* const unmatched = find_unmatched(facts, *cycle))
    return blame_unmatched(facts, *unmatched);
  return blame_order(facts, *cycle);
}

}  // namespace postflight
