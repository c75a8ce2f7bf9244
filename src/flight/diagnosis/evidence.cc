#include "flight/diagnosis/evidence.h"

#include <algorithm>
#include <limits>
#include <set>

#include "flight/model/entry.h"

namespace postflight {
namespace {

std::int64_t created(const Case& facts, const Wait::Waiter& waiter) {
  return facts.job.find(facts.graph.world[waiter.rank])
      ->entries.created(waiter.entry);
}

std::int64_t number_after(std::int64_t sequence) {
  return sequence == std::numeric_limits<std::int64_t>::max() ? sequence
                                                              : sequence + 1;
}

}  // namespace

std::vector<Rank> ranks_at(const Case& facts,
                           const std::vector<std::uint32_t>& places) {
  std::vector<Rank> ranks;
  ranks.reserve(places.size());
  for (const std::uint32_t place : places)
    ranks.push_back(facts.graph.world[place]);
  std::ranges::sort(ranks);
  return ranks;
}

std::vector<std::uint32_t> roots_of(const Case& facts, WaitRoot::Kind kind) {
  std::vector<std::uint32_t> places;
  for (const WaitRoot& root : facts.graph.roots)
    if (root.kind == kind)
      places.insert(places.end(), root.ranks.begin(), root.ranks.end());
  std::ranges::sort(places);
  return places;
}

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
        {facts.graph.world[waiter.rank], waiter.entry, EvidenceRole::kWaiting});
  }
}

void add_last(const Case& facts, const std::vector<Rank>& ranks,
              Verdict& verdict) {
  for (const Rank rank : ranks)
    if (const RankDump* const dump = facts.job.find(rank)) {
      if (dump->entries.empty())
        verdict.evidence.push_back(
            {rank, std::nullopt, EvidenceRole::kNoEntries});
      else
        verdict.evidence.push_back(
            {rank, static_cast<std::uint32_t>(dump->entries.size() - 1),
             EvidenceRole::kLast});
    }
}

bool lasted(const Case& facts, const Wait& wait) {
  std::int64_t begin = 0;
  for (const Wait::Waiter& waiter : wait.waiting)
    begin = std::max(begin, created(facts, waiter));
  std::int64_t latest = 0;
  for (std::size_t i = 0; i < facts.job.ranks.size(); ++i)
    latest = std::max(latest, facts.matching.latest(i));
  // Longer than anything that ended, and longer than hosts' clocks differ where
  // they are kept in step.
  const std::int64_t longest = facts.motion.longest_ns;
  return elapsed(begin, latest) > 2 * kNanosecondsPerSecond &&
         elapsed(begin, latest) / 3 > longest;
}

bool is_moving(const Case& facts, const Wait& wait) {
  std::set<std::int64_t> fronts;
  bool sure = false;
  for (const Lane& lane : facts.matching.lanes(wait.group)) {
    if (lane.dump == nullptr || lane.stale)
      continue;
    const Slot* const front = lane.first_pending();
    fronts.insert(front != nullptr ? front->sequence
                                   : number_after(lane.last_enqueued));
    const Slot* const slot = lane.find(wait.sequence);
    sure |= slot != nullptr && slot->done && !slot->weak &&
            facts.matching.completes(lane.dump->entries[slot->closing]);
  }
  return sure && fronts.size() > 2;
}

namespace {

// The same operation on the same tensors by the same line of code.
bool same_call(const Job& job, const Entry& a, const Entry& b) {
  const Call& first = job.call(a);
  const Call& second = job.call(b);
  return first.name == second.name && first.inputs == second.inputs &&
         first.outputs == second.outputs &&
         first.input_dtypes == second.input_dtypes &&
         (a.stack == StackId{} || b.stack == StackId{} || a.stack == b.stack);
}

Entry first_entry(const Case& facts, const Wait& wait) {
  const Wait::Waiter& waiter = wait.waiting[0];
  return facts.job.find(facts.graph.world[waiter.rank])->entries[waiter.entry];
}

// Whether one rank of a larger group waits alone, so that it may be the one at
// fault.
bool is_alone(const Wait& wait) {
  return wait.waiting.size() == 1 && wait.done.empty() &&
         wait.absent.size() + wait.unknown.size() > 1;
}

}  // namespace

const Wait* meant_for(const Case& facts, Rank rank, const Entry& entry,
                      GroupId used) {
  const std::uint32_t place = facts.graph.place(rank);
  for (const Wait& wait : facts.graph.waits)
    if (wait.group != used && !wait.transfer && !is_alone(wait) &&
        std::ranges::find(wait.absent, place) != wait.absent.end() &&
        same_call(facts.job, first_entry(facts, wait), entry))
      return &wait;
  return nullptr;
}

bool is_usual_there(const Case& facts, Rank rank, const Wait& wait) {
  const Lane* const lane = facts.matching.lane(wait.group, rank);
  const Slot* const now = lane == nullptr ? nullptr : lane->find(wait.sequence);
  const Slot* const before =
      now == nullptr ? nullptr : lane->find(wait.sequence - 1);
  if (before == nullptr)
    return false;
  Entry earlier = lane->dump->entries[before->entry];
  earlier.stack = {};  // from any place in the code
  return same_call(facts.job, lane->dump->entries[now->entry], earlier);
}

const Wait* strayed_to(const Case& facts, Rank rank, const Entry& entry,
                       GroupId meant) {
  const std::uint32_t place = facts.graph.place(rank);
  for (const Wait& wait : facts.graph.waits)
    if (wait.group != meant && !wait.transfer && is_alone(wait) &&
        wait.waiting[0].rank == place &&
        same_call(facts.job, first_entry(facts, wait), entry))
      return &wait;
  return nullptr;
}

}  // namespace postflight
