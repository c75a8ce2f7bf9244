// A hang is a consistent cut: everything stands still, so that it does not
// matter when each rank dumped. In a job that moves each dump shows another
// moment, and a rank that "never joined" may just have dumped first.
//
// Two things tell motion. What others finished: an all_reduce ends nowhere
// before all have joined it, so a rank that has not come to it, or that waits
// in an earlier one, dumped before they did (Lane::stale). In a hang at most a
// few dumps are older than the rest, those of ranks that were asked or raised
// early. And signs of life: an operation that reads completed but is not
// retired ended within the watchdog's poll before the dump. Its age, from
// creation to the moment that the dump saw it completed, is then no longer than
// operations of that job take. A watchdog that is stuck itself leaves such
// entries, too, but of an age that is the time since the hang.
//
// What fools it: gloo, dumps of active operations only and transfers without
// batches show no signs of life, and in a job whose operations take seconds
// they are rare. A job whose ranks all dump within one operation looks the same
// moving or stuck.
#include "flight/diagnosis/motion.h"

#include <algorithm>

namespace postflight {
namespace {

// How often the watchdog looks, and so how coarse the times are at which it
// sees operations end.
constexpr std::int64_t kWatchdogPoll = 100'000'000;  // nanoseconds

bool ended_recently(const Entries& entries, std::uint32_t entry,
                    std::int64_t longest) {
  return entries.state(entry) == State::kCompleted && !entries.retired(entry) &&
         entries.completed(entry) != 0 &&
         elapsed(entries.created(entry), entries.completed(entry)) / 2 <=
             longest / 2 + kWatchdogPoll / 2;
}

}  // namespace

Motion find_motion(const Matching& matching) {
  const Job& job = matching.job();
  Motion motion;
  motion.alive.resize(job.ranks.size());
  motion.lagging.resize(job.ranks.size());
  std::vector<std::int64_t> longest;
  std::int64_t longest_of_job = 0;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    longest.push_back(matching.pace(rank).longest_ns);
    longest_of_job = std::max(longest_of_job, longest.back());
  }
  motion.longest_ns = longest_of_job;
  if (longest_of_job > 0)
    for (std::int64_t& one : longest)
      one = one == 0 ? longest_of_job : one;

  for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
    const std::span<const Lane> lanes = matching.lanes({g});
    const std::int64_t finished = matching.last_finished({g});
    for (const Lane& lane : lanes) {
      if (lane.dump == nullptr)
        continue;
      const auto rank = static_cast<std::size_t>(lane.dump - job.ranks.data());
      const Slot* const pending = lane.first_pending();
      if (pending != nullptr && pending->sequence <= finished)
        motion.lagging[rank] = 1;
      for (const Slot& slot : lane.slots)
        if (slot.weak && longest[rank] > 0 &&
            ended_recently(lane.dump->entries, slot.closing, longest[rank]))
          motion.alive[rank] = 1;
    }
  }
  std::int64_t oldest = 0;
  std::int64_t newest = 0;
  std::vector<std::int64_t> gaps;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const RankDump& dump = job.ranks[rank];
    for (const Transfer& transfer : matching.transfers(rank))
      if (transfer.done && longest[rank] > 0 &&
          ended_recently(dump.entries, transfer.closing, longest[rank]))
        motion.alive[rank] = 1;
    if (!dump.complete || dump.entries.empty())
      continue;
    ++motion.complete;
    if (const std::int64_t gap = matching.pace(rank).mean_gap_ns; gap > 0)
      gaps.push_back(gap);
    const bool stale = matching.stale(rank);
    motion.stale_count += stale ? 1 : 0;
    const bool behind = stale || motion.lagging[rank];
    motion.behind_count += behind ? 1 : 0;
    // Those who dumped early were alive then, hang or not.
    motion.alive_count += !behind && motion.alive[rank] ? 1 : 0;
    const std::int64_t latest = matching.latest(rank);
    newest = std::max(newest, latest);
    if (stale && latest != 0 && (oldest == 0 || latest < oldest))
      oldest = latest;
  }
  if (gaps.size() > 1) {
    const auto middle =
        gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size()) / 2;
    std::ranges::nth_element(gaps, middle);
    motion.gap_ns = *middle;
    motion.still = motion.alive_count == 0 && *middle < kWatchdogPoll;
  }
  if (oldest != 0)
    motion.stale_for_ns = std::max<std::int64_t>(0, elapsed(oldest, newest));
  return motion;
}

}  // namespace postflight
