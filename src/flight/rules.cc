#include "flight/rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "flight/rank_set.h"

namespace postflight {
namespace {

std::vector<Rank> ranks_at(const Case& facts,
                           const std::vector<std::uint32_t>& places) {
  std::vector<Rank> ranks;
  for (const std::uint32_t place : places)
    ranks.push_back(facts.graph.world[place]);
  std::ranges::sort(ranks);
  return ranks;
}

// Ranks of all roots of one kind.
std::vector<std::uint32_t> roots_of(const Case& facts, WaitRoot::Kind kind) {
  std::vector<std::uint32_t> places;
  for (const WaitRoot& root : facts.graph.roots)
    if (root.kind == kind)
      places.insert(places.end(), root.ranks.begin(), root.ranks.end());
  std::ranges::sort(places);
  return places;
}

std::int64_t created(const Case& facts, const Wait::Waiter& waiter) {
  return facts.job.find(facts.graph.world[waiter.rank])
      ->entries.created(waiter.entry);
}

// The wait in which most ranks wait for one of `ranks`; of those, the oldest.
const Wait* main_wait(const Case& facts,
                      const std::vector<std::uint32_t>& ranks) {
  const Wait* best = nullptr;
  for (const Wait& wait : facts.graph.waits) {
    const bool hits = std::ranges::any_of(
        facts.graph.targets(wait), [&](std::uint32_t target) {
          return std::ranges::binary_search(ranks, target);
        });
    if (hits &&
        (best == nullptr || wait.waiting.size() > best->waiting.size() ||
         (wait.waiting.size() == best->waiting.size() &&
          created(facts, wait.waiting[0]) < created(facts, best->waiting[0]))))
      best = &wait;
  }
  return best;
}

void tell_operation(const Case& facts, const Wait& wait, Verdict& verdict) {
  verdict.group = wait.group;
  verdict.operation = facts.operation_text(wait);
  if (!wait.transfer)
    verdict.sequence = wait.sequence;
}

void add_waiting(const Case& facts, const Wait& wait, Verdict& verdict) {
  constexpr std::size_t kEnough = 64;
  for (const Wait::Waiter& waiter : wait.waiting) {
    if (verdict.evidence.size() >= kEnough)
      return;
    verdict.evidence.push_back(
        {facts.graph.world[waiter.rank], waiter.entry, "waiting"});
  }
}

// What each of the ranks did last.
void add_last(const Case& facts, const std::vector<Rank>& ranks,
              Verdict& verdict) {
  for (const Rank rank : ranks)
    if (const RankDump* const dump = facts.job.find(rank)) {
      if (dump->entries.empty())
        verdict.evidence.push_back({rank, std::nullopt, "no entries"});
      else
        verdict.evidence.push_back(
            {rank, static_cast<std::uint32_t>(dump->entries.size() - 1),
             "last"});
    }
}

// Whether the wait lasted so long by the job's own times that it is no
// operation that was just under way.
bool lasted(const Case& facts, const Wait& wait) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t begin = 0;
  for (const Wait::Waiter& waiter : wait.waiting)
    begin = std::max(begin, created(facts, waiter));
  std::int64_t latest = 0;
  for (std::size_t i = 0; i < facts.job.ranks.size(); ++i)
    latest = std::max(latest, facts.timeline.latest(i));
  return latest - begin > 2 * kSecond;
}

VerdictKind kind_of(Argument argument) {
  switch (argument) {
    case Argument::kType:
      return VerdictKind::kTypeMismatch;
    case Argument::kSize:
      return VerdictKind::kSizeMismatch;
    case Argument::kDtype:
      return VerdictKind::kDtypeMismatch;
  }
  return VerdictKind::kInconclusive;
}

// Only what can have to do with the hang: its group is stuck from there on, or
// one of its odd ranks is part of the waiting.
bool matters(const Case& facts, const Divergence& divergence) {
  const std::vector<Rank>& odd = divergence.disagreement.minority;
  const auto is_odd = [&](std::uint32_t place) {
    return std::ranges::binary_search(odd, facts.graph.world[place]);
  };
  return std::ranges::any_of(facts.graph.waits, [&](const Wait& wait) {
    return (wait.group == divergence.group && !wait.transfer &&
            wait.sequence >= divergence.sequence) ||
           std::ranges::any_of(wait.absent, is_odd) ||
           std::ranges::any_of(wait.busy, is_odd);
  });
}

std::int64_t time_of(const Case& facts, const Divergence& divergence) {
  std::int64_t time = 0;
  for (const Lane& lane : facts.timeline.lanes(divergence.group))
    if (const Slot* const slot = lane.find(divergence.sequence)) {
      const std::int64_t own = lane.dump->entries.created(slot->entry);
      time = time == 0 ? own : std::min(time, own);
    }
  return time;
}

// An operation meant for another group: there, the same call by the same line
// of code is what the rank is missed in.
const Wait* meant_for(const Case& facts, Rank rank, CallId call_id,
                      StackId stack, GroupId used) {
  const Call& call = facts.job.tables.call(call_id);
  const std::uint32_t place = facts.graph.place(rank);
  for (const Wait& wait : facts.graph.waits) {
    if (wait.group == used || wait.transfer ||
        std::ranges::find(wait.absent, place) == wait.absent.end())
      continue;
    const Wait::Waiter& waiter = wait.waiting[0];
    const Entry other =
        facts.job.find(facts.graph.world[waiter.rank])->entries[waiter.entry];
    const Call& meant = facts.job.call(other);
    if (meant.name == call.name && meant.inputs == call.inputs &&
        meant.outputs == call.outputs &&
        meant.input_dtypes == call.input_dtypes &&
        (stack == StackId{} || other.stack == StackId{} ||
         stack == other.stack))
      return &wait;
  }
  return nullptr;
}

// Of two sides that are as many, the one that was meant for another group is
// wrong.
void decide_by_group(const Case& facts, const Divergence& divergence,
                     Disagreement& found) {
  if (found.decided)
    return;
  std::vector<Rank> strayed;
  for (const Rank rank : found.minority) {
    const Lane* const lane = facts.timeline.lane(divergence.group, rank);
    const Slot* const slot = lane->find(divergence.sequence);
    const Entry entry = lane->dump->entries[slot->entry];
    if (meant_for(facts, rank, entry.call, entry.stack, divergence.group))
      strayed.push_back(rank);
  }
  if (strayed.size() == 1 && found.minority.size() > 1) {
    found.minority = strayed;
    found.decided = true;
  }
}

}  // namespace

std::optional<Verdict> blame_divergence(const Case& facts) {
  const Divergence* first = nullptr;
  for (const Divergence& divergence : facts.divergences) {
    if (!matters(facts, divergence))
      continue;
    const bool better =
        first == nullptr ||
        std::pair(!divergence.disagreement.decided,
                  time_of(facts, divergence)) <
            std::pair(!first->disagreement.decided, time_of(facts, *first));
    if (better)
      first = &divergence;
  }
  if (first == nullptr)
    return std::nullopt;
  Disagreement found = first->disagreement;
  decide_by_group(facts, *first, found);
  const Lane* const lane = facts.timeline.lane(first->group, found.minority[0]);
  const Slot* const slot = lane->find(first->sequence);
  const Entry entry = lane->dump->entries[slot->entry];

  Verdict verdict;
  verdict.kind = kind_of(found.argument);
  verdict.culprits = found.minority;
  verdict.group = first->group;
  verdict.operation =
      facts.job.operation(facts.job.tables.call(found.majority_call)).name;
  verdict.sequence = first->sequence;
  const std::size_t members = facts.timeline.lanes(first->group).size();
  verdict.confidence = !found.decided ? Confidence::kPossible
                       : found.minority.size() * 3 <= members
                           ? Confidence::kCertain
                           : Confidence::kLikely;
  verdict.summary = fmt::format(
      "{} {} {} #{} of {}", Case::ranks_text(found.minority), found.difference,
      verdict.operation, first->sequence, facts.group_text(first->group));
  for (const Lane& other : facts.timeline.lanes(first->group))
    if (const Slot* const at = other.find(first->sequence);
        at != nullptr && verdict.evidence.size() < 64)
      verdict.evidence.push_back(
          {other.rank, at->entry,
           std::ranges::binary_search(found.minority, other.rank)
               ? "differs"
               : "majority"});
  if (const Wait* const meant =
          found.minority.size() == 1
              ? meant_for(facts, found.minority[0],
                          lane->dump->entries.call(slot->entry), entry.stack,
                          first->group)
              : nullptr) {
    verdict.kind = VerdictKind::kOrderMismatch;
    verdict.summary = fmt::format(
        "{} called {} on {} instead of {}", Case::ranks_text(found.minority),
        facts.operation_text(*meant), facts.group_text(first->group),
        facts.group_text(meant->group));
    verdict.findings.push_back(
        {"wrong_group", Severity::kError, verdict.summary, ""});
  } else if (first->skipped != 0) {
    const int count = std::abs(first->skipped);
    verdict.findings.push_back(
        {first->skipped > 0 ? "skipped_operation" : "extra_operation",
         Severity::kError,
         fmt::format("{} {} {} operation{} of {} before #{}: from there on its "
                     "operations are those of the others, moved",
                     Case::ranks_text(found.minority),
                     first->skipped > 0 ? "left out" : "did", count,
                     count == 1 ? "" : "s", facts.group_text(first->group),
                     first->sequence),
         ""});
  }
  if (!found.decided)
    verdict.findings.push_back(
        {"undecided", Severity::kNote,
         "no side has more ranks than the other, so who is wrong is not known",
         ""});
  return verdict;
}

std::optional<Verdict> blame_idle(const Case& facts) {
  const std::vector<std::uint32_t> idle =
      roots_of(facts, WaitRoot::Kind::kIdle);
  if (idle.empty())
    return std::nullopt;
  const Wait& wait = *main_wait(facts, idle);
  Verdict verdict;
  verdict.kind = VerdictKind::kNeverJoined;
  verdict.culprits = ranks_at(facts, idle);
  tell_operation(facts, wait, verdict);
  const std::vector<Rank> waiting = facts.graph.waiting_for(idle, {});
  const std::size_t members = facts.timeline.lanes(wait.group).size();
  verdict.confidence = lasted(facts, wait) && idle.size() * 2 < members &&
                               facts.job.group(wait.group).configured
                           ? Confidence::kCertain
                           : Confidence::kLikely;
  verdict.summary = fmt::format(
      "{} never {}; {} of {} ranks {} for {}",
      Case::ranks_text(verdict.culprits), facts.missed_text(wait),
      waiting.size(), facts.graph.world.size(),
      waiting.size() == 1 ? "waits" : "wait", idle.size() == 1 ? "it" : "them");
  add_waiting(facts, wait, verdict);
  add_last(facts, verdict.culprits, verdict);
  return verdict;
}

// Where start times are recorded, a kernel that waits for its peers is
// started, and the one that never got its turn is not. And a rank that saw
// other work end after its peers were done with this was not merely asked too
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
    for (const Lane& lane : facts.timeline.lanes(wait.group))
      if (const Slot* const slot = lane.find(wait.sequence)) {
        const Entry entry = lane.dump->entries[slot->closing];
        if (slot->done && !slot->weak && entry.retired)
          peers_done = std::max(peers_done, entry.completed);
      }
    for (const Lane& lane : facts.timeline.lanes(wait.group)) {
      const Slot* const slot = lane.find(wait.sequence);
      if (slot == nullptr || slot->done)
        continue;
      const auto index =
          static_cast<std::size_t>(lane.dump - facts.job.ranks.data());
      const Entry entry = lane.dump->entries[slot->closing];
      if (!facts.timeline.completes(entry))
        continue;
      if (entry.state == State::kStarted)
        started.push_back(lane.rank);
      else if (facts.timeline.has_starts(index))
        scheduled.push_back(lane.rank);
      if (peers_done > 0 &&
          facts.timeline.latest_completion(index) > peers_done + kMargin)
        late.push_back(lane.rank);
    }
    const bool by_start = !started.empty() && !scheduled.empty();
    if (late.size() * 2 > facts.timeline.lanes(wait.group).size())
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
                  "the device of {} did not finish {}, which its "
                  "peers have done",
                  Case::ranks_text(verdict.culprits), facts.wait_text(wait));
    add_waiting(facts, wait, verdict);
    return verdict;
  }
  return std::nullopt;
}

std::optional<Verdict> blame_unknown(const Case& facts) {
  const std::vector<std::uint32_t> unknown =
      roots_of(facts, WaitRoot::Kind::kUnknown);
  if (unknown.empty())
    return std::nullopt;
  const Wait& wait = *main_wait(facts, unknown);
  const std::vector<Rank> waiting = facts.graph.waiting_for(unknown, {});
  Verdict verdict;
  verdict.kind = VerdictKind::kNoDump;
  verdict.culprits = ranks_at(facts, unknown);
  verdict.confidence = Confidence::kLikely;
  tell_operation(facts, wait, verdict);
  if (unknown.size() * 2 > facts.graph.world.size()) {
    verdict.kind = VerdictKind::kInconclusive;
    verdict.culprits.clear();
    verdict.summary = fmt::format(
        "something hangs in {}, but {} of {} ranks have no dump here",
        facts.wait_text(wait), unknown.size(), facts.graph.world.size());
    add_waiting(facts, wait, verdict);
    return verdict;
  }
  const bool cut = std::ranges::any_of(verdict.culprits, [&](Rank rank) {
    return facts.job.find(rank) != nullptr;
  });
  verdict.summary = fmt::format(
      "{} left no {}dump, and {} of {} ranks {} for {} in {}",
      Case::ranks_text(verdict.culprits), cut ? "whole " : "", waiting.size(),
      facts.graph.world.size(), waiting.size() == 1 ? "waits" : "wait",
      unknown.size() == 1 ? "it" : "them", facts.wait_text(wait));
  add_waiting(facts, wait, verdict);
  return verdict;
}

namespace {

// Ranks of a circle by the wait that holds each up.
std::map<std::uint32_t, std::vector<std::uint32_t>> sides_of(
    const Case& facts, const WaitRoot& root) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> sides;
  for (const std::uint32_t rank : root.ranks)
    sides[facts.graph.waits_of[rank].front()].push_back(rank);
  return sides;
}

// Ranks whose operation is the one that they are missed in elsewhere.
std::vector<std::uint32_t> strays_of(const Case& facts, const WaitRoot& root) {
  std::vector<std::uint32_t> strays;
  for (const std::uint32_t rank : root.ranks) {
    const Wait& wait = facts.graph.waits[facts.graph.waits_of[rank].front()];
    if (wait.transfer || wait.waiting.size() > 1)
      continue;
    const Entry entry =
        facts.job.find(facts.graph.world[rank])->entries[wait.waiting[0].entry];
    if (meant_for(facts, facts.graph.world[rank], entry.call, entry.stack,
                  wait.group))
      strays.push_back(rank);
  }
  return strays;
}

}  // namespace

std::optional<Verdict> blame_cycle(const Case& facts) {
  const WaitRoot* circle = nullptr;
  for (const WaitRoot& root : facts.graph.roots)
    if (root.kind == WaitRoot::Kind::kCycle &&
        (circle == nullptr || root.ranks.size() > circle->ranks.size()))
      circle = &root;
  if (circle == nullptr)
    return std::nullopt;
  const auto sides = sides_of(facts, *circle);
  const auto most = std::ranges::max_element(
      sides, {}, [](const auto& side) { return side.second.size(); });
  const bool clear = most->second.size() * 2 > circle->ranks.size();

  Verdict verdict;
  // A transfer without its other side, between ranks that went on.
  const Wait* unmatched = nullptr;
  for (const std::uint32_t w : circle->waits)
    if (facts.graph.waits[w].transfer && !facts.graph.waits[w].absent.empty())
      unmatched = &facts.graph.waits[w];
  if (unmatched != nullptr) {
    verdict.kind = VerdictKind::kPointToPoint;
    verdict.culprits = ranks_at(facts, unmatched->absent);
    verdict.confidence = Confidence::kLikely;
    // If the other side is held up by a transfer with this very rank, either
    // of them may have left one out.
    const std::uint32_t own = unmatched->waiting[0].rank;
    const Wait& theirs =
        facts.graph.waits[facts.graph.waits_of[unmatched->absent[0]].front()];
    if (theirs.transfer && facts.graph.place(theirs.transfer->peer) == own) {
      verdict.culprits.push_back(facts.graph.world[own]);
      std::ranges::sort(verdict.culprits);
      verdict.confidence = Confidence::kPossible;
    }
    tell_operation(facts, *unmatched, verdict);
    verdict.summary =
        fmt::format("{} never {}", Case::ranks_text(verdict.culprits),
                    facts.missed_text(*unmatched));
    add_waiting(facts, *unmatched, verdict);
    add_last(facts, verdict.culprits, verdict);
    return verdict;
  }

  verdict.kind = VerdictKind::kOrderMismatch;
  std::vector<std::uint32_t> odd = strays_of(facts, *circle);
  const bool strayed = odd.size() == 1;
  if (!strayed) {
    odd.clear();
    for (const auto& [wait, ranks] : sides)
      if (!clear || wait != most->first)
        odd.insert(odd.end(), ranks.begin(), ranks.end());
  }
  verdict.culprits = ranks_at(facts, odd);
  verdict.confidence = clear && odd.size() == 1 ? Confidence::kCertain
                       : clear || strayed       ? Confidence::kLikely
                                                : Confidence::kPossible;
  const Wait& main = facts.graph.waits[most->first];
  tell_operation(facts, main, verdict);
  const Wait& other =
      facts.graph.waits[std::ranges::find_if(sides, [&](const auto& side) {
                          return side.first != most->first;
                        })->first];
  verdict.summary =
      clear ? fmt::format(
                  "{} is in {} while the others wait for it in {}: it "
                  "used the groups in another order",
                  Case::ranks_text(verdict.culprits), facts.wait_text(other),
                  facts.wait_text(main))
            : fmt::format("{} wait for each other in {} and {}",
                          Case::ranks_text(verdict.culprits),
                          facts.wait_text(main), facts.wait_text(other));
  for (const std::uint32_t w : circle->waits)
    add_waiting(facts, facts.graph.waits[w], verdict);
  return verdict;
}

namespace {

// Ranks of a group that dump while they get on are at different places; where
// only one lags behind, it may as well be stuck.
bool is_moving(const Case& facts, const Wait& wait) {
  std::set<std::int64_t> fronts;
  bool sure = false;
  for (const Lane& lane : facts.timeline.lanes(wait.group)) {
    if (lane.dump == nullptr)
      continue;
    const Slot* const front = lane.first_pending();
    fronts.insert(front != nullptr ? front->sequence : lane.last_enqueued + 1);
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
