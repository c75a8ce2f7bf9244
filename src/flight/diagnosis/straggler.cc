// A straggler is last in nearly every collective, by much more than the next
// rank. A wrong clock looks the same, so clock skew is removed first where it
// is clear: completed operations end at the same time everywhere, so
// differences of their end times are due to the clocks. End times are only as
// precise as the watchdog's polling, so small skews are ignored.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "flight/diagnosis/rules.h"

namespace postflight {
namespace {

constexpr std::size_t kFewestOperations = 10;
constexpr double kLeastDelay = 10e6;  // ns; healthy ranks are within 7 ms
// Two watchdogs see one end at most a poll apart.
constexpr double kClearSkew = 1.5 * kWatchdogPoll;
constexpr double kMostlyLast = 0.7;
constexpr double kTimesTheNext = 3;
constexpr double kByChance = 1e-3;
// Of the usual time between operations: ranks of a slow job differ by more.
constexpr double kLeastPart = 0.05;

double median(std::vector<double>& values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How late a rank joined the collectives of one group.
struct Lateness {
  double typical = 0;  // ns after the median of the group
  double last = 0;     // the fraction in which it was last
  std::size_t operations = 0;
};

std::map<Rank, Lateness> lateness_in(const Case& facts, GroupId group) {
  std::map<Rank, Lateness> found;
  std::vector<Lane> lanes;
  for (const Lane& lane : facts.matching.lanes(group))
    if (lane.dump != nullptr)
      lanes.push_back(lane);
  if (lanes.size() < 3)
    return found;
  const Lane* shortest = nullptr;
  for (const Lane& lane : lanes) {
    if (lane.slots.size() < kFewestOperations)
      return found;
    if (shortest == nullptr || lane.slots.size() < shortest->slots.size())
      shortest = &lane;
  }
  std::vector<std::vector<double>> created(lanes.size());
  std::vector<std::vector<double>> completed(lanes.size());
  std::vector<double> row(lanes.size());
  std::vector<double> sorted;
  for (const Slot& slot : shortest->slots) {
    bool whole = true;
    bool timed = true;
    std::vector<double> ends(lanes.size());
    const double base = static_cast<double>(
        shortest->dump->entries.created(shortest->slots[0].entry));
    for (std::size_t i = 0; whole && i < lanes.size(); ++i) {
      const Slot* const own = lanes[i].find(slot.sequence);
      whole = own != nullptr && own->done;
      if (!whole)
        break;
      const Entry entry = lanes[i].dump->entries[own->entry];
      row[i] = static_cast<double>(entry.created) - base;
      ends[i] = static_cast<double>(entry.completed) - base;
      timed &= entry.completed != 0 && entry.retired;
    }
    if (!whole)
      continue;
    sorted = row;
    const double middle = median(sorted);
    for (std::size_t i = 0; i < lanes.size(); ++i)
      created[i].push_back(row[i] - middle);
    if (timed) {
      sorted = ends;
      const double end = median(sorted);
      for (std::size_t i = 0; i < lanes.size(); ++i)
        completed[i].push_back(ends[i] - end);
    }
  }
  if (created[0].size() < kFewestOperations)
    return found;
  for (std::size_t i = 0; i < lanes.size(); ++i)
    if (completed[i].size() >= kFewestOperations) {
      const double skew = median(completed[i]);
      if (std::abs(skew) > kClearSkew)
        for (double& delay : created[i])
          delay -= skew;
    }
  std::vector<std::size_t> last(lanes.size(), 0);
  for (std::size_t k = 0; k < created[0].size(); ++k) {
    std::size_t latest = 0;
    for (std::size_t i = 1; i < lanes.size(); ++i)
      if (created[i][k] > created[latest][k])
        latest = i;
    ++last[latest];
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const std::size_t operations = created[i].size();
    found[lanes[i].rank] = {
        median(created[i]),
        static_cast<double>(last[i]) / static_cast<double>(operations),
        operations};
  }
  return found;
}

// At most how probable it is that one of `candidates` ranks is last so often by
// chance (Chernoff's bound).
double by_chance(const Lateness& late, std::size_t members,
                 std::size_t candidates) {
  const double share = 1.0 / static_cast<double>(members);
  const double part = late.last;
  if (part <= share)
    return 1;
  double distance = part * std::log(part / share);
  if (part < 1)
    distance += (1 - part) * std::log((1 - part) / (1 - share));
  return static_cast<double>(candidates) *
         std::exp(-static_cast<double>(late.operations) * distance);
}

// The rank that is clearly last in a group, if there is one.
std::optional<Rank> last_of(const std::map<Rank, Lateness>& group,
                            double least_delay, std::size_t candidates) {
  const Rank* worst = nullptr;
  double most = 0;
  double next = 0;
  for (const auto& [rank, late] : group) {
    if (worst == nullptr || late.typical > most) {
      next = worst == nullptr ? 0 : most;
      most = late.typical;
      worst = &rank;
    } else {
      next = std::max(next, late.typical);
    }
  }
  if (worst == nullptr || most < least_delay || most < kTimesTheNext * next ||
      group.at(*worst).last < kMostlyLast ||
      by_chance(group.at(*worst), group.size(), candidates) > kByChance)
    return std::nullopt;
  return *worst;
}

}  // namespace

std::optional<Verdict> blame_straggler(const Case& facts) {
  struct Seen {
    std::size_t late = 0;
    std::size_t groups = 0;
    double typical = 0;
    double last = 0;
    std::size_t operations = 0;
    GroupId group;
  };
  std::map<Rank, Seen> seen;
  const double least_delay = std::max(
      kLeastDelay, kLeastPart * static_cast<double>(facts.motion.gap_ns));
  for (std::uint32_t g = 0; g < facts.job.groups.size(); ++g) {
    const std::map<Rank, Lateness> late = lateness_in(facts, {g});
    const std::optional<Rank> last =
        last_of(late, least_delay, facts.graph.world.size());
    for (const auto& [rank, one] : late) {
      Seen& all = seen[rank];
      ++all.groups;
      if (rank != last)
        continue;
      ++all.late;
      if (one.typical > all.typical) {
        all.typical = one.typical;
        all.last = one.last;
        all.operations = one.operations;
        all.group = {g};
      }
    }
  }
  // A victim of the straggler is late in some groups, but not in the one that
  // it shares with the straggler.
  Verdict verdict;
  const Seen* worst = nullptr;
  for (const auto& [rank, all] : seen)
    if (all.late > 0 && all.late == all.groups) {
      verdict.culprits.push_back(rank);
      if (worst == nullptr || all.typical > worst->typical)
        worst = &all;
    }
  // If many ranks are late, the clocks are wrong, not the ranks.
  if (worst == nullptr ||
      (verdict.culprits.size() > 1 &&
       verdict.culprits.size() * 16 > facts.graph.world.size()))
    return std::nullopt;
  verdict.kind = VerdictKind::kStraggler;
  verdict.confidence = Confidence::kLikely;
  verdict.group = worst->group;
  verdict.summary = fmt::format(
      "{} {} last in {:.0f}% of the {} collectives of {}, {:.0f} ms after the "
      "others",
      Case::ranks_text(verdict.culprits),
      verdict.culprits.size() == 1 ? "is" : "are", worst->last * 100,
      worst->operations, facts.group_text(worst->group), worst->typical / 1e6);
  return verdict;
}

}  // namespace postflight
