// A straggler keeps the others waiting: in many operations of each of its
// groups it is the last to come, long after the one before it, and nobody else
// costs the group nearly as much time. It has to be so from the beginning to
// the end of what the dumps have, and more often than by chance.
//
// What is compared is the moment at which hosts enqueued. Hosts that wait for
// each operation, as with gloo, come to all but the first of a step together,
// so that the operations in which somebody is waited for count, not all. Hosts
// that run ahead enqueue a step at once, all of it late if its beginning was:
// becoming late takes time, so that what a rank enqueued in less than that and
// no later still counts as one occasion.
//
// In a pipeline one late rank makes those late that it exchanges transfers
// with, and so does a slow link. What tells them apart is when hosts go on from
// an operation that nobody left before all had come: it ended for all at once,
// so that who goes on late from there was kept by itself.
//
// What fools it: a clock that is wrong looks like a rank that is late. An
// operation that needs all ends everywhere at once, so that the differences at
// which ranks saw operations end are those of the clocks, give or take the
// watchdog's poll. Lateness that those explain is not lateness. Gloo records no
// ends; there a rank that is late by the same time in all operations is taken
// for one with another clock. The stages of a pipeline differ by right, so that
// a rank with transfers is compared with others of its stage; and where those
// at both ends of a transfer are late, the link between them may be slow. A
// host that reads values back from its device enqueues later than those that
// run ahead, though nobody waits for it: it comes when the operation before has
// ended. So the time after that end has to be part of its lateness.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "flight/diagnosis/rules.h"

namespace postflight {
namespace {

constexpr std::size_t kFewestOperations = 5;
constexpr std::size_t kFewestOccasions = 4;
constexpr double kLeastDelay = 2e6;  // ns; hosts' clocks agree within that
// Two watchdogs see one end at most a poll apart.
constexpr double kClearSkew = 1.5 * kWatchdogPoll;
constexpr double kMostlyLast = 0.7;
constexpr double kTimesTheNext = 3;
constexpr double kByChance = 1e-3;
// Where nobody else is ever late, by as much as a part of that.
constexpr double kTimesTheRest = 20;
constexpr double kByChanceAlone = 0.05;
// Of all its time, what a group must lose by waiting for one rank.
constexpr double kLeastPart = 0.05;

double quantile(std::vector<double> values, double part) {
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(
                           part * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum / static_cast<double>(values.size());
}

// Twice the standard error of the mean.
double doubt(const std::vector<double>& values) {
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values)
    squares += (value - middle) * (value - middle);
  const auto count = static_cast<double>(values.size());
  return 2 * std::sqrt(squares / count / count);
}

// When the ranks of a group came to the operations that all have completed, and
// when they saw them end, in nanoseconds after the usual rank.
struct Comings {
  std::vector<Rank> ranks;
  // By rank and operation. The second is empty if ends are not known.
  std::vector<std::vector<double>> came;
  std::vector<std::vector<double>> ended;
  std::vector<double> usual;  // when the usual rank came, by operation

  std::size_t operations() const { return usual.size(); }
  double span() const {
    return usual.empty() ? 0 : usual.back() - usual.front();
  }
};

//
// Or since when others can have waited for them: not before the operation
// before ended, as their devices were busy until then.
//
// Or when they went on to their next operation, of those that nobody went on
// from before all had come.
enum class Moment : std::uint8_t { kComing, kHoldingUp, kGoingOn };

Comings comings_of(const Case& facts, GroupId group, Moment moment) {
  Comings found;
  std::vector<const Lane*> lanes;
  const Lane* shortest = nullptr;
  for (const Lane& lane : facts.matching.lanes(group)) {
    if (lane.dump == nullptr)
      continue;
    if (lane.slots.size() < kFewestOperations)
      return {};
    lanes.push_back(&lane);
    if (shortest == nullptr || lane.slots.size() < shortest->slots.size())
      shortest = &lane;
  }
  if (lanes.size() < 2)
    return {};
  found.came.resize(lanes.size());
  found.ended.resize(lanes.size());
  for (const Lane* lane : lanes)
    found.ranks.push_back(lane->rank);
  std::vector<double> came(lanes.size());
  std::vector<double> ended(lanes.size());
  std::vector<double> skews(lanes.size());
  for (std::size_t i = 0; i < lanes.size(); ++i)
    skews[i] =
        static_cast<double>(facts.motion.offsets[static_cast<std::size_t>(
            lanes[i]->dump - facts.job.ranks.data())]);
  const std::int64_t base =
      shortest->dump->entries.created(shortest->slots[0].entry);
  // When the operation before ended: until then nobody waited for a host.
  double ended_before = -std::numeric_limits<double>::infinity();
  for (const Slot& slot : shortest->slots) {
    bool whole = slot.sequence > 1;  // the first makes the communicator
    bool timed = true;
    double all_came = -std::numeric_limits<double>::infinity();
    double first_left = std::numeric_limits<double>::infinity();
    double first_end = first_left;
    for (std::size_t i = 0; whole && i < lanes.size(); ++i) {
      const Slot* const own = lanes[i]->find(slot.sequence);
      whole = own != nullptr && own->done;
      if (!whole)
        break;
      const Entries& entries = lanes[i]->dump->entries;
      came[i] = static_cast<double>(elapsed(base, entries.created(own->entry)));
      const std::int64_t end = entries.completed(own->closing);
      ended[i] = static_cast<double>(elapsed(base, end));
      timed &= end != 0 && entries.retired(own->closing);
      first_end = std::min(first_end, ended[i] - skews[i]);
      if (moment != Moment::kGoingOn)
        continue;
      all_came = std::max(all_came, came[i] - skews[i]);
      whole = own->closing + 1 < entries.size();
      if (!whole)
        break;
      came[i] =
          static_cast<double>(elapsed(base, entries.created(own->closing + 1)));
      first_left = std::min(first_left, came[i] - skews[i]);
    }
    if (moment == Moment::kHoldingUp)
      for (std::size_t i = 0; i < lanes.size(); ++i)
        came[i] = std::max(came[i], ended_before + skews[i]);
    if (whole && timed)
      ended_before = first_end;
    if (!whole || first_left < all_came)
      continue;
    const double usual = quantile(came, 0.5);
    const double end = quantile(ended, 0.5);
    found.usual.push_back(usual);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      found.came[i].push_back(came[i] - usual);
      if (timed)
        found.ended[i].push_back(ended[i] - end);
    }
  }
  return found;
}

// Takes out what the clocks differ by, where that is clear. Returns how far
// each rank's lateness may still be due to its clock.
std::vector<double> align_clocks(Comings& group) {
  std::vector<double> doubts;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const bool timed = group.ended[i].size() >= kFewestOperations;
    const double skew =
        timed ? mean(group.ended[i]) : quantile(group.came[i], 0.15);
    if (std::abs(skew) <= kClearSkew) {
      doubts.push_back(timed ? skew + doubt(group.ended[i]) : 0);
      continue;
    }
    for (double& late : group.came[i])
      late -= skew;
    doubts.push_back(kWatchdogPoll);
  }
  return doubts;
}

// At most how probable it is that one of `candidates` ranks is last in so many
// of `events` by chance (Chernoff's bound).
double by_chance(double part, std::size_t events, std::size_t members,
                 std::size_t candidates) {
  const double share = 1.0 / static_cast<double>(members);
  if (part <= share)
    return 1;
  double distance = part * std::log(part / share);
  if (part < 1)
    distance += (1 - part) * std::log((1 - part) / (1 - share));
  return static_cast<double>(candidates) *
         std::exp(-static_cast<double>(events) * distance);
}

// That a group waited for one rank.
struct Late {
  Rank rank;
  double typical = 0;  // ns after the rank before it
  double last = 0;     // on that part of the occasions
  std::size_t occasions = 0;
  bool clear = false;   // it is no chance
  bool costly = false;  // and takes much of the group's time
};

// Who was last in an operation, and how long after the one before it.
struct Last {
  std::size_t who = 0;
  double by = 0;
};

Last last_in(const Comings& group, std::size_t operation) {
  std::size_t last = 0;
  double next = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < group.ranks.size(); ++i) {
    const double time = group.came[i][operation];
    const double latest = group.came[last][operation];
    next = std::max(next, std::min(time, latest));
    last = time > latest ? i : last;
  }
  return {last, group.came[last][operation] - next};
}

// The occasions on which somebody was late by at least so much: how many, how
// many of them are due to one rank, and whether these are spread over all the
// time.
struct Occasions {
  std::size_t all = 0;
  std::size_t own = 0;
  bool spread = false;
};

Occasions occasions_of(const Comings& group, const std::vector<Last>& lasts,
                       std::size_t who, double least) {
  Occasions found;
  struct Before {
    double time = -std::numeric_limits<double>::infinity();
    double by = 0;
  };
  std::vector<Before> before(group.ranks.size());
  bool thirds[3] = {};
  for (std::size_t k = 0; k < lasts.size(); ++k) {
    const Last& last = lasts[k];
    if (last.by < least)
      continue;
    const double time = group.usual[k] + group.came[last.who][k];
    if (last.who == who)
      thirds[k * 3 / lasts.size()] = true;
    if (time - before[last.who].time >= last.by / 2 ||
        last.by - before[last.who].by >= least / 4) {
      ++found.all;
      found.own += last.who == who ? 1 : 0;
    }
    before[last.who] = {time, last.by};
  }
  found.spread = thirds[0] && thirds[1] && thirds[2];
  return found;
}

// Whether nobody waits in a group, by no clock: it meets just after another one
// did, in which all have waited already. It says nothing of who is late.
bool is_quiet(const Comings& group) {
  double waited = 0;
  for (std::size_t k = 0; k < group.operations(); ++k)
    waited += last_in(group, k).by;
  return waited < kLeastPart * group.span();
}

std::optional<Late> late_in(const Case& facts, Comings& group) {
  const std::vector<double> doubts = align_clocks(group);
  std::vector<Last> lasts;
  std::vector<double> waited(group.ranks.size(), 0);
  for (std::size_t k = 0; k < group.operations(); ++k) {
    lasts.push_back(last_in(group, k));
    waited[lasts.back().who] += lasts.back().by;
  }
  const auto worst = static_cast<std::size_t>(std::ranges::max_element(waited) -
                                              waited.begin());
  const double most = waited[worst];
  waited[worst] = 0;
  const double next = std::ranges::max(waited);
  if (most < kTimesTheNext * next)
    return std::nullopt;
  std::vector<double> own;
  for (const Last& last : lasts)
    if (last.who == worst && last.by >= kLeastDelay)
      own.push_back(last.by);
  if (own.empty())
    return std::nullopt;
  const double typical = quantile(own, 0.5);
  const Occasions seen = occasions_of(group, lasts, worst, typical / 2);
  if (typical < 1.5 * doubts[worst] || !seen.spread || seen.own == 0)
    return std::nullopt;
  const double part =
      static_cast<double>(seen.own) / static_cast<double>(seen.all);
  if (part < kMostlyLast)
    return std::nullopt;
  // Of two, one is mostly last. Among several whose work differs by chance,
  // others would be last, too, some of the time and by some of that.
  const double chance =
      by_chance(part, seen.all, group.ranks.size(), facts.graph.world.size());
  const bool alone = seen.own == seen.all && most >= kTimesTheRest * next;
  const bool clear = seen.own >= kFewestOccasions && group.ranks.size() > 2 &&
                     chance <= (alone ? kByChanceAlone : kByChance);
  const bool costly = most >= kLeastPart * group.span();
  return Late{group.ranks[worst], typical, part, seen.all, clear, costly};
}

// Whether others waited for it after the operation before had ended, for a part
// of its lateness that watchdogs' stamps of that end leave.
bool holds_up(const Comings& group, const Late& late) {
  constexpr double kPart = 0.04;
  double waited = 0;
  std::size_t occasions = 0;
  for (std::size_t k = 0; k < group.operations(); ++k) {
    const Last last = last_in(group, k);
    if (group.ranks[last.who] == late.rank) {
      waited += last.by;
      ++occasions;
    }
  }
  return occasions > 0 && waited >= kPart * late.typical *
                                        static_cast<double>(late.occasions) *
                                        late.last;
}

// The ranks that each rank exchanges transfers with.
std::map<Rank, std::vector<Rank>> partners_in(const Case& facts) {
  std::map<Rank, std::vector<Rank>> partners;
  for (const Channel& channel : facts.matching.channels()) {
    partners[channel.source].push_back(channel.destination);
    partners[channel.destination].push_back(channel.source);
  }
  return partners;
}

// A rank that is always late, and the group that tells how much.
struct Straggler {
  Rank rank;
  Late late;
  GroupId group;
};

// The ranks that went on late from operations that had ended for all at once:
// nobody else can have kept them.
std::vector<Straggler> late_to_go_on(const Case& facts) {
  struct Seen {
    bool clear = false;
    std::optional<Straggler> worst;
  };
  std::map<Rank, Seen> seen;
  for (std::uint32_t g = 0; g < facts.job.groups.size(); ++g) {
    Comings group = comings_of(facts, {g}, Moment::kGoingOn);
    if (group.operations() < kFewestOperations || group.span() <= 0)
      continue;
    const std::optional<Late> late = late_in(facts, group);
    if (!late)
      continue;
    Seen& all = seen[late->rank];
    all.clear |= late->clear;
    if (late->costly && (!all.worst || late->typical > all.worst->late.typical))
      all.worst = {late->rank, *late, {g}};
  }
  std::vector<Straggler> found;
  for (const auto& [rank, all] : seen)
    if (all.clear && all.worst)
      found.push_back(*all.worst);
  return found;
}

// The ranks that were late to come, in each of their groups. A victim of the
// straggler is late in some groups, but not in the one that it shares with the
// straggler.
std::vector<Straggler> late_to_come(const Case& facts) {
  struct Seen {
    std::size_t late = 0;
    std::size_t groups = 0;
    bool clear = false;
    bool alike = false;  // in a group without transfers of its own
    Late worst;
    GroupId group;
  };
  std::map<Rank, Seen> seen;
  const std::map<Rank, std::vector<Rank>> partners = partners_in(facts);
  const auto any_partner = [&](Rank rank, const auto& is) {
    const auto found = partners.find(rank);
    return found != partners.end() && std::ranges::any_of(found->second, is);
  };
  for (std::uint32_t g = 0; g < facts.job.groups.size(); ++g) {
    Comings group = comings_of(facts, {g}, Moment::kComing);
    if (group.operations() < kFewestOperations || group.span() <= 0)
      continue;
    const bool quiet = is_quiet(group);
    std::optional<Late> late = late_in(facts, group);
    if (late && !holds_up(comings_of(facts, {g}, Moment::kHoldingUp), *late))
      late.reset();
    // It can also be seen not to be chance in a group that waits only a little
    // longer for who has kept another one waiting before.
    if (late && late->clear)
      seen[late->rank].clear = true;
    if (quiet && (!late || !late->costly))
      continue;
    for (const Rank rank : group.ranks) {
      Seen& all = seen[rank];
      ++all.groups;
      if (!late || !late->costly || late->rank != rank)
        continue;
      ++all.late;
      all.alike = all.alike || !any_partner(rank, [&](Rank other) {
                    return std::ranges::binary_search(group.ranks, other);
                  });
      if (late->typical > all.worst.typical) {
        all.worst = *late;
        all.group = {g};
      }
    }
  }
  std::vector<Straggler> found;
  for (const auto& entry : seen) {
    const Rank rank = entry.first;
    const Seen& all = entry.second;
    const bool with_partner = any_partner(rank, [&](Rank other) {
      const auto one = seen.find(other);
      return facts.job.find(other) == nullptr ||
             (one != seen.end() &&
              one->second.worst.typical > all.worst.typical / 2);
    });
    if (all.clear && all.alike && all.late > 0 && all.late == all.groups &&
        !with_partner)
      found.push_back({rank, all.worst, all.group});
  }
  return found;
}

}  // namespace

std::optional<Verdict> blame_straggler(const Case& facts) {
  // If many ranks are late, the clocks are wrong, not the ranks.
  const auto plausible = [&](const std::vector<Straggler>& late) {
    return late.size() == 1 ||
           (!late.empty() && late.size() * 16 <= facts.graph.world.size());
  };
  const std::vector<Straggler> to_go_on = late_to_go_on(facts);
  const std::vector<Straggler> to_come = late_to_come(facts);
  const bool went_on = plausible(to_go_on) &&
                       !std::ranges::equal(to_go_on, to_come, {},
                                           &Straggler::rank, &Straggler::rank);
  const std::vector<Straggler>& late = went_on ? to_go_on : to_come;
  if (!plausible(late))
    return std::nullopt;
  Verdict verdict;
  verdict.kind = VerdictKind::kStraggler;
  verdict.confidence = Confidence::kLikely;
  for (const Straggler& one : late)
    verdict.culprits.push_back(one.rank);
  const Straggler& worst = *std::ranges::max_element(
      late, {}, [](const Straggler& one) { return one.late.typical; });
  verdict.group = worst.group;
  verdict.summary = fmt::format(
      "{} {} the last to {} on {:.0f}% of the {} occasions on which {} waited "
      "for one rank, {:.0f} ms after the others",
      Case::ranks_text(verdict.culprits), late.size() == 1 ? "was" : "were",
      went_on ? "go on" : "join", worst.late.last * 100, worst.late.occasions,
      facts.group_text(worst.group), worst.late.typical / 1e6);
  return verdict;
}

}  // namespace postflight
