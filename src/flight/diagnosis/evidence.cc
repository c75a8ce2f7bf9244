#include "flight/diagnosis/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "flight/model/entry.h"

namespace postflight {
namespace {

std::int64_t created(const Case& facts, const Wait::Waiter& waiter) {
  return facts.job.find(facts.graph.world[waiter.rank])
      ->entries.created(waiter.entry);
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

namespace {

std::size_t place_in_job(const Case& facts, std::uint32_t rank) {
  return static_cast<std::size_t>(facts.job.find(facts.graph.world[rank]) -
                                  facts.job.ranks.data());
}

// In less than that part of its time a job is hardly ever asked by chance.
constexpr double kRare = 0.02;
constexpr double kRareInGloo = 0.1;
// So many of the group's operations tell how its ranks used to come.
constexpr std::size_t kPast = 64;

// How a group used to spend its time, after watchdogs had noticed the operation
// before.
struct GroupPast {
  // The part in which its last members, so many or a quarter of them, had not
  // all come to an operation; 1 if that is not known.
  double absent = 1;
  // The part in which all had come and waited for its end; 0 if not known.
  double waiting = 0;
};

GroupPast past_of(const Case& facts, GroupId group, std::size_t absent) {
  std::vector<const Lane*> lanes;
  const Lane* shortest = nullptr;
  for (const Lane& lane : facts.matching.lanes(group)) {
    if (lane.dump == nullptr || lane.slots.empty() ||
        facts.motion.early[static_cast<std::size_t>(lane.dump -
                                                    facts.job.ranks.data())])
      continue;
    lanes.push_back(&lane);
    if (shortest == nullptr || lane.last_enqueued < shortest->last_enqueued)
      shortest = &lane;
  }
  if (lanes.size() < 2 || absent >= lanes.size())
    return {};
  const std::size_t before =
      lanes.size() - 1 - std::max(absent, (lanes.size() + 3) / 4);
  std::vector<std::int64_t> offsets;
  for (const Lane* lane : lanes)
    offsets.push_back(facts.motion.offsets[static_cast<std::size_t>(
        lane->dump - facts.job.ranks.data())]);
  GroupPast past{.absent = 0, .waiting = 0};
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::size_t used = 0;
  std::vector<std::int64_t> came(lanes.size());
  const std::size_t count = shortest->slots.size();
  std::int64_t ended = 0;  // the operation before was noticed by all
  for (std::size_t i = count > kPast ? count - kPast : 0; i < count; ++i) {
    const std::int64_t sequence = shortest->slots[i].sequence;
    std::int64_t end = 0;
    // The first of several watchdogs notices the end soonest.
    std::int64_t soonest = 0;
    std::int64_t noticed = 1;
    bool whole = true;
    for (std::size_t k = 0; whole && k < lanes.size(); ++k) {
      const Slot* const slot = lanes[k]->find(sequence);
      whole = slot != nullptr && slot->done;
      if (!whole)
        break;
      const Entries& entries = lanes[k]->dump->entries;
      came[k] = elapsed(offsets[k], entries.created(slot->entry));
      const std::int64_t completed = entries.completed(slot->closing);
      if (completed == 0 || !entries.retired(slot->closing))
        continue;
      const std::int64_t own = elapsed(offsets[k], completed);
      end = std::max(end, own);
      soonest = soonest == 0 ? own : std::min(soonest, own);
      ++noticed;
    }
    if (!whole)
      continue;
    std::ranges::sort(came);
    if (first == 0)
      first = came.front();
    last = came.back();
    if (sequence <= 1) {
      ended = end;
      continue;  // makes the communicator, which takes long
    }
    ++used;
    past.absent += static_cast<double>(std::max<std::int64_t>(
        0, elapsed(std::max(came[before], ended), came.back())));
    if (soonest != 0)
      past.waiting += static_cast<double>(std::max<std::int64_t>(
          0, elapsed(std::max(came.back(), ended),
                     soonest - kWatchdogPoll / noticed)));
    ended = end;
  }
  if (used == 0 || last <= first)
    return {};
  const auto span = static_cast<double>(elapsed(first, last));
  return {past.absent / span, past.waiting / span};
}

// The part of its time in which the rank had nothing in progress, nor anything
// that its watchdog had not noticed yet, and had been quiet for as long as it
// was when it dumped; 1 if that is not known.
double usually_idle(const Case& facts, std::uint32_t rank) {
  constexpr std::size_t kPastEntries = 256;
  const RankDump* const dump = facts.job.find(facts.graph.world[rank]);
  if (dump == nullptr || dump->entries.size() < 4)
    return 1;
  const Entries& entries = dump->entries;
  const std::size_t count = entries.size();
  const std::int64_t quiet =
      elapsed(entries.created(count - 1),
              facts.matching.latest(place_in_job(facts, rank)));
  double idle = 0;
  std::int64_t span = 0;
  std::int64_t noticed = 0;
  for (std::size_t i = count > kPastEntries ? count - kPastEntries : 0;
       i + 1 < count; ++i) {
    const std::int64_t created = entries.created(i);
    const std::int64_t next = entries.created(i + 1);
    const bool first = entries.sequence(i) <= 1 && noticed == 0;
    noticed = std::max(noticed, entries.completed(i));
    if (first)
      continue;  // makes communicators, which takes long
    span += std::max<std::int64_t>(0, elapsed(created, next));
    idle += static_cast<double>(std::max<std::int64_t>(
        0, elapsed(std::max(noticed, created + quiet), next)));
  }
  return noticed == 0 || span <= 0 ? 1 : idle / static_cast<double>(span);
}

}  // namespace

bool lasted(const Case& facts, const Wait& wait) {
  std::int64_t begin = 0;
  std::int64_t latest = 0;
  std::int64_t own = 0;  // the longest by the times of one rank
  std::int64_t timeout = 0;
  for (const Wait::Waiter& waiter : wait.waiting) {
    const std::size_t place = place_in_job(facts, waiter.rank);
    const std::int64_t came =
        elapsed(facts.motion.offsets[place], created(facts, waiter));
    begin = std::max(begin, came);
    latest = std::max(latest, facts.motion.moments[place]);
    own = std::max(own, elapsed(came, facts.motion.moments[place]));
    timeout = facts.job
                  .call(facts.job.find(facts.graph.world[waiter.rank])
                            ->entries[waiter.entry])
                  .timeout_ms;
  }
  for (const std::uint32_t rank : wait.absent)
    latest = std::max(latest, facts.motion.moments[place_in_job(facts, rank)]);
  if (timeout > 0 && own / 1'000'000 > timeout)
    return true;
  const std::int64_t past = std::max(own, elapsed(begin, latest));
  // Longer than anything that ended, and than clocks differ that were compared
  // by what watchdogs saw.
  return facts.motion.longest_ns > 0 && past > 20 * kWatchdogPoll &&
         past / 3 > facts.motion.longest_ns;
}

bool usually_waits(const Case& facts, const Wait& wait) {
  return past_of(facts, wait.group, 1).waiting > 0.5;
}

namespace {

// Whether the newest time in a dump is that of the dump: when an operation
// started is seen as it is dumped.
bool dates_itself(const RankDump& dump) {
  for (std::size_t i = dump.entries.size(); i-- > 0;)
    if (dump.entries.state(i) == State::kStarted)
      return true;
  return false;
}

}  // namespace

bool just_begun(const Case& facts, const Wait& wait) {
  bool known = false;
  std::int64_t longest = 0;
  for (const Wait::Waiter& waiter : wait.waiting) {
    const RankDump& dump = *facts.job.find(facts.graph.world[waiter.rank]);
    const std::size_t place = place_in_job(facts, waiter.rank);
    if (!dates_itself(dump))
      continue;
    known = true;
    longest = std::max(
        longest, elapsed(created(facts, waiter), facts.matching.latest(place)));
  }
  return known && longest <= std::max(20 * kWatchdogPoll,
                                      facts.motion.longest_ns / 2 * 3);
}

namespace {

// Whether ranks came to what they wait in long before their dumps, compared
// with how far apart they came; true if start times do not tell.
bool waits_together(const Case& facts) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t rank = 0; rank < facts.graph.world.size(); ++rank) {
    if (facts.graph.idle(rank))
      continue;
    const std::size_t place = place_in_job(facts, rank);
    const RankDump& dump = facts.job.ranks[place];
    const Wait& wait = facts.graph.waits[facts.graph.waits_of[rank].front()];
    const std::int64_t came = created(
        facts, *std::ranges::find(wait.waiting, rank, &Wait::Waiter::rank));
    first = std::min(first, elapsed(facts.motion.offsets[place], came));
    last = std::max(last, elapsed(facts.motion.offsets[place], came));
    if (dates_itself(dump))
      shortest =
          std::min(shortest, elapsed(came, facts.matching.latest(place)));
  }
  return shortest == std::numeric_limits<std::int64_t>::max() ||
         (shortest > 20 * kWatchdogPoll && shortest / 3 > elapsed(first, last));
}

// Dumps of active work only tell nothing of the past. All that is left is that
// they agree, and that few ranks keep all the others.
bool stands_without_past(const Case& facts,
                         const std::vector<std::uint32_t>& absent) {
  if (absent.empty() ||
      facts.motion.early_count + facts.motion.lagging_count > 0 ||
      absent.size() * 8 > facts.graph.world.size() + 7 ||
      !waits_together(facts))
    return false;
  for (const RankDump& dump : facts.job.ranks) {
    const std::uint32_t rank = facts.graph.place(dump.rank);
    if (dump.complete && facts.graph.idle(rank) &&
        !std::ranges::binary_search(absent, rank))
      return false;
  }
  return true;
}

// At most how probable it is that so many dumps of a moving job, each taken at
// some moment, all came before the end of an operation, and all others so
// long after it that no watchdog had still to notice it.
double by_order(const Case& facts, std::size_t earlier) {
  const auto all = static_cast<double>(facts.motion.complete);
  const auto before = static_cast<double>(earlier);
  const auto poll = static_cast<double>(kWatchdogPoll);
  // Of the time between the first dump and the last.
  const double noticing =
      poll / (poll + static_cast<double>(facts.motion.stretch_ns));
  const double part = (1 - noticing) * before / all;
  double ways = 1;
  for (double i = 0; i < before; ++i)
    ways *= (all - i) / (i + 1);
  return std::min(1.0, ways * std::pow(part, before) *
                           std::pow(1 - noticing - part, all - before));
}

// Whether those that wait there do so in what others are certainly done with.
bool lags(const Case& facts, const Wait& wait) {
  return !wait.transfer && !wait.done.empty() &&
         wait.sequence == facts.motion.finished[wait.group.value];
}

}  // namespace

bool stands(const Case& facts, const Wait& wait,
            const std::vector<std::uint32_t>& absent) {
  if (facts.motion.gave_up || lasted(facts, wait))
    return true;
  if (just_begun(facts, wait) || facts.motion.goes_on())
    return false;
  if (facts.motion.standing_count > facts.motion.fresh_count)
    return true;
  // A fault keeps some ranks, not most of those that wait with them.
  if (!wait.transfer && wait.absent.size() > wait.waiting.size() &&
      wait.absent.size() > 1)
    return false;
  // Of the ranks of several hosts, some come later than others at any time.
  if (absent.size() > 1 && absent.size() * 4 > facts.graph.world.size())
    return false;
  // Who waits there and is alive came just before.
  if (std::ranges::any_of(wait.waiting, [&](const Wait::Waiter& waiter) {
        return facts.motion.alive[place_in_job(facts, waiter.rank)] != 0;
      }))
    return false;
  const Wait::Waiter& waiter = wait.waiting[0];
  const Entry entry =
      facts.job.find(facts.graph.world[waiter.rank])->entries[waiter.entry];
  const bool completes = facts.matching.completes(entry);
  const Lane* const lane =
      facts.matching.lane(wait.group, facts.graph.world[waiter.rank]);
  if (completes && facts.motion.longest_ns == 0 && lane != nullptr &&
      lane->only_active)
    return stands_without_past(facts, absent);
  // Few signs of life are those of ranks that dumped early.
  double rare = facts.motion.silent;
  // That a dump is earlier than others is common where a job moves.
  const bool early = std::ranges::any_of(absent, [&](std::uint32_t rank) {
    return facts.motion.early[place_in_job(facts, rank)] != 0;
  });
  if (rare > kRare && !early && !wait.transfer && !wait.absent.empty())
    rare =
        std::min(rare, past_of(facts, wait.group, wait.absent.size()).absent);
  for (const std::uint32_t rank : absent)
    if (rare > kRare && !early)
      rare = std::min(rare, usually_idle(facts, rank));
  if (early && absent.size() == facts.motion.early_count)
    rare *= by_order(facts, facts.motion.early_count);
  // Devices fail more seldom than hosts are slow.
  if (wait.waiting.size() == 1 && lags(facts, wait))
    rare *= 2 * by_order(facts, 1);
  // Gloo records no times at which operations end, and less is known of it.
  // That several stop at once is rarer than that one does.
  const auto several =
      static_cast<double>(std::max<std::size_t>(1, absent.size()));
  return rare * several <= (completes ? kRare : kRareInGloo);
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
