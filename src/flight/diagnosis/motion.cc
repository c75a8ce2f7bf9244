// A hang is a consistent cut: everything stands still, so that it does not
// matter when each rank dumped. In a job that moves each dump shows another
// moment, and a rank that "never joined" may just have dumped first.
//
// What others finished dates a dump. An all_reduce ends nowhere before all have
// joined it, so a rank that has not enqueued it dumped before they did (older),
// and what it lacks proves nothing. One that still waits in an earlier
// operation of that group dumped early, too, but its host may have stopped for
// good right after: what it lacks, it may really lack. A rank that waits in
// just what the others have finished is early or has a device that is stuck; if
// it shows a sign of life, it is early. In a hang few dumps are early, those of
// ranks that were asked or raised before the others gave up.
//
// Signs of life: an operation that reads completed but is not retired ended
// within the watchdog's poll before the dump. Its age, from creation to the
// moment that the dump saw it completed, is then no longer than operations of
// that job take. A watchdog that is stuck itself leaves such entries, too, but
// of an age that is the time since the hang. How many signs to expect is known
// from the job's own past: a rank that finished something every 20 ms shows one
// in four of five moments, one that does so every 2 s in one of forty. Several
// early dumps of a hang are fewer than that.
//
// Start times tell more. What waits for its peers has started: a job in which
// most devices have not come to their oldest operation is computing, and stands
// nowhere. And what has started is seen to be so when it is dumped, so that the
// dump tells for how long it has waited. A second dump of one process repeats
// the times of the first, and so looks younger than it is.
//
// A rank that waits in what the others have finished has a device that failed,
// or it dumped before they had. If its host had come to where hosts wait for
// their devices (the others went on from there late, and not before all had
// come), the device explains all; if hosts go on there, its host had stopped
// or its dump is early.
//
// What fools it: gloo, dumps of active operations only and transfers without
// batches show no signs of life, and in a job whose operations take seconds
// they are rare. A job whose ranks all dump within one operation looks the same
// moving or stuck.
#include "flight/diagnosis/motion.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "flight/matching/entry_role.h"

namespace postflight {
namespace {

// So many entries at the end of each dump tell how the job used to move.
constexpr std::size_t kPastOperations = 256;

bool ended_recently(const Entries& entries, std::uint32_t entry,
                    std::int64_t longest) {
  return entries.state(entry) == State::kCompleted && !entries.retired(entry) &&
         entries.completed(entry) != 0 &&
         elapsed(entries.created(entry), entries.completed(entry)) / 2 <=
             longest / 2 + kWatchdogPoll / 2;
}

double median(std::vector<double>& values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// When a rank's watchdog used to notice that something had ended.
struct Pulse {
  double alive = 0;    // the part of the time with something not yet noticed
  double silent = 0;   // the part in which certainly nothing ended for a poll
  double stretch = 0;  // ns of such a time, as a random moment finds it
};

std::optional<Pulse> pulse_of(const Entries& entries, std::int64_t gap_ns) {
  const std::size_t first =
      entries.size() > kPastOperations ? entries.size() - kPastOperations : 0;
  std::map<std::int64_t, std::int64_t> ticks;  // and what ended before each
  for (std::size_t i = first; i < entries.size(); ++i)
    if (entries.retired(i) && entries.completed(i) != 0 &&
        entries.state(i) == State::kCompleted &&
        // The first makes the communicator, which takes long.
        (entries.sequence(i) > 1 || entries.p2p_sequence(i) > 1))
      // One look of the watchdog takes a moment.
      ++ticks[entries.completed(i) / (kWatchdogPoll / 10)];
  const double poll = 10;
  if (ticks.size() < 3) {
    if (gap_ns == 0)
      return std::nullopt;
    const double part =
        static_cast<double>(kWatchdogPoll) / static_cast<double>(gap_ns);
    return Pulse{std::min(1.0, part), std::max(0.0, 1 - part),
                 static_cast<double>(gap_ns)};
  }
  double alive = 0;
  double silent = 0;
  double squares = 0;
  std::int64_t before = ticks.begin()->first;
  for (const auto& [tick, count] : ticks) {
    const auto gap = static_cast<double>(elapsed(before, tick));
    before = tick;
    const auto ended = static_cast<double>(count);
    alive += std::min(gap, poll) * ended / (ended + 1);
    const double quiet = std::max(0.0, gap - 1.1 * poll);
    silent += quiet;
    squares += quiet * quiet;
  }
  const auto span =
      static_cast<double>(elapsed(ticks.begin()->first, ticks.rbegin()->first));
  return Pulse{std::min(1.0, alive / span), silent / span,
               silent > 0 ? squares / silent * (kWatchdogPoll / poll) : 0};
}

class Finder {
 public:
  explicit Finder(const Matching& matching)
      : matching_(matching), job_(matching.job()) {}

  Motion find() && {
    const std::size_t ranks = job_.ranks.size();
    motion_.older.resize(ranks);
    motion_.early.resize(ranks);
    motion_.alive.resize(ranks);
    motion_.offsets.resize(ranks);
    motion_.moments.resize(ranks);
    lagging_.resize(ranks);
    find_longest();
    find_life();
    align_clocks();
    compare_groups();
    compare_transfers();
    count();
    find_ages();
    return std::move(motion_);
  }

 private:
  std::size_t place_of(const Lane& lane) const {
    return static_cast<std::size_t>(lane.dump - job_.ranks.data());
  }

  void find_longest() {
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      longest_.push_back(matching_.pace(rank).longest_ns);
      motion_.longest_ns = std::max(motion_.longest_ns, longest_.back());
    }
    for (std::int64_t& one : longest_)
      one = one == 0 ? motion_.longest_ns : one;
  }

  void find_life() {
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      const RankDump& dump = job_.ranks[rank];
      for (const Transfer& transfer : matching_.transfers(rank))
        if (!transfer.done) {
          motion_.gave_up |=
              dump.entries.retired(transfer.closing) &&
              matching_.completes(dump.entries[transfer.closing]);
          break;  // the oldest fails first
        }
      if (longest_[rank] <= 0)
        continue;
      const auto see = [&](std::uint32_t entry) {
        if (ended_recently(dump.entries, entry, longest_[rank]))
          motion_.alive[rank] = 1;
      };
      for (const Transfer& transfer : matching_.transfers(rank))
        if (transfer.done)
          see(transfer.closing);
    }
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g)
      for (const Lane& lane : matching_.lanes({g})) {
        if (lane.dump == nullptr)
          continue;
        if (const Slot* const pending = lane.first_pending())
          motion_.gave_up |=
              lane.dump->entries.retired(pending->closing) &&
              matching_.completes(lane.dump->entries[pending->closing]);
        const std::int64_t longest = longest_[place_of(lane)];
        if (longest <= 0 || motion_.alive[place_of(lane)])
          continue;
        for (const Slot& slot : lane.slots)
          if (slot.weak &&
              ended_recently(lane.dump->entries, slot.closing, longest)) {
            motion_.alive[place_of(lane)] = 1;
            break;
          }
      }
  }

  // Gloo does not tell what is done from what failed, but nobody goes on after
  // a failure. A dump of active work only lists nothing that is done, so that
  // what comes before its oldest operation is.
  std::int64_t last_finished(GroupId group) const {
    std::int64_t finished = matching_.last_finished(group);
    const auto needs_all = [&](const Lane& lane, const Slot& slot) {
      return matching_.operation(lane.dump->entries.call(slot.entry))
          .needs_all();
    };
    bool all_need_all = true;
    std::int64_t active = finished;
    for (const Lane& lane : matching_.lanes(group)) {
      for (std::size_t i = lane.slots.size(); i-- > 1;) {
        const Slot& slot = lane.slots[i - 1];
        if (slot.sequence <= finished)
          break;
        if (!slot.done ||
            matching_.completes(lane.dump->entries[slot.closing]) ||
            !needs_all(lane, slot))
          continue;
        finished = slot.sequence;
        break;
      }
      if (!lane.only_active || !lane.bounded || lane.slots.empty())
        continue;
      for (const Slot& slot : lane.slots)
        all_need_all &= needs_all(lane, slot);
      active = std::max(active, lane.slots.front().sequence - 1);
    }
    if (all_need_all)
      return std::max(finished, active);
    // What kind of operation it was, those tell that still wait in it.
    for (const Lane& lane : matching_.lanes(group))
      for (const Slot& slot : lane.slots)
        if (slot.sequence <= active && slot.sequence > finished &&
            needs_all(lane, slot))
          finished = slot.sequence;
    return finished;
  }

  void compare_groups() {
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
      const std::int64_t finished =
          motion_.finished.emplace_back(last_finished({g}));
      // When the first watchdog noticed its end, and how far others are.
      std::int64_t ended = 0;
      std::int64_t ahead = finished;
      for (const Lane& lane : matching_.lanes({g})) {
        if (lane.dump == nullptr)
          continue;
        ahead = std::max(ahead, lane.last_enqueued);
        const Slot* const slot = lane.find(finished);
        if (slot == nullptr || !slot->done)
          continue;
        const std::int64_t own = lane.dump->entries.completed(slot->closing);
        if (own != 0) {
          const std::int64_t time =
              elapsed(motion_.offsets[place_of(lane)], own);
          ended = ended == 0 ? time : std::min(ended, time);
        }
      }
      for (const Lane& lane : matching_.lanes({g})) {
        if (lane.dump == nullptr || !lane.dump->complete || !lane.bounded)
          continue;
        const std::size_t rank = place_of(lane);
        const Slot* const pending = lane.first_pending();
        if (lane.last_enqueued < finished)
          motion_.older[rank] = 1;
        if (pending != nullptr && pending->sequence < finished)
          motion_.early[rank] = 1;
        if (pending == nullptr || pending->sequence != finished)
          continue;
        lagging_[rank] = 1;
        // A device that is stuck does not keep its host from going on, unless
        // that waits for it; a rank that raised shows nothing later.
        if (lane.last_enqueued == finished && ahead > finished && ended != 0 &&
            !lane.dump->entries.retired(pending->closing) &&
            elapsed(ended, elapsed(motion_.offsets[rank],
                                   matching_.latest(rank))) <= kWatchdogPoll &&
            !host_waits(lane, *pending))
          motion_.early[rank] = 1;
      }
    }
  }

  // Whether the rank's host has come to where hosts wait for their devices: the
  // others went on from there only when all had come to `pending`, and later
  // than hosts go on else. That it enqueued nothing more needs no other cause
  // then than that its device does not finish.
  bool host_waits(const Lane& lane, const Slot& pending) const {
    constexpr std::size_t kMostCompared = 16;
    const Entries& own = lane.dump->entries;
    const auto last = static_cast<std::uint32_t>(own.size() - 1);
    const GroupId group = job_.call(own[last]).group;
    const std::int64_t sequence = own.sequence(last);
    if (matching_.operation(own.call(last)).point_to_point())
      return false;
    std::int64_t came = std::numeric_limits<std::int64_t>::min();
    for (const Lane& other :
         matching_.lanes(job_.call(own[pending.entry]).group))
      if (other.dump != nullptr)
        if (const Slot* const slot = other.find(pending.sequence))
          came =
              std::max(came, elapsed(motion_.offsets[place_of(other)],
                                     other.dump->entries.created(slot->entry)));
    std::vector<double> waits;
    std::vector<double> usual;
    std::size_t after_all = 0;
    for (const Lane& other : matching_.lanes(group)) {
      if (&other == &lane || other.dump == nullptr ||
          waits.size() == kMostCompared)
        continue;
      const Slot* const slot = other.find(sequence);
      const Entries& entries = other.dump->entries;
      if (slot == nullptr || slot->closing + 1 >= entries.size())
        continue;
      const std::int64_t next = entries.created(slot->closing + 1);
      after_all += elapsed(motion_.offsets[place_of(other)], next) >= came;
      waits.push_back(
          static_cast<double>(elapsed(entries.created(slot->closing), next)));
      const std::size_t count = entries.size();
      for (std::size_t i =
               count > kPastOperations / 4 ? count - kPastOperations / 4 : 1;
           i < count; ++i)
        usual.push_back(static_cast<double>(
            elapsed(entries.created(i - 1), entries.created(i))));
    }
    if (waits.empty() || usual.empty() || after_all * 4 < waits.size() * 3)
      return false;
    const auto quarter =
        usual.begin() + static_cast<std::ptrdiff_t>(usual.size() / 4);
    std::ranges::nth_element(usual, quarter);
    return median(waits) >= 3 * *quarter || *quarter >= 1e6;
  }

  // What was received has been sent. What was sent need not have been
  // received: the connection keeps some of it.
  void compare_transfers() {
    for (const Channel& channel : matching_.channels()) {
      const RankDump* const source = job_.find(channel.source);
      if (source == nullptr || !source->complete || channel.shift != 0 ||
          channel.sends.size() >= channel.receives_done)
        continue;
      const RankDump* const destination = job_.find(channel.destination);
      const Lane* const lane = matching_.lane(channel.group, channel.source);
      if (destination != nullptr && !ring_has_wrapped(*source) &&
          !ring_has_wrapped(*destination) && lane != nullptr &&
          !lane->only_active)
        motion_.older[static_cast<std::size_t>(source - job_.ranks.data())] = 1;
    }
  }

  // An operation that needs all ends everywhere at once, so that the times at
  // which it was seen to end differ by the clocks and at most a poll.
  void align_clocks() {
    constexpr std::int64_t kClear = 5 * kWatchdogPoll;
    constexpr std::size_t kEnough = 9;
    std::vector<char> known(job_.ranks.size(), 0);
    std::vector<std::uint32_t> order;
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g)
      order.push_back(g);
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](auto g) {
      return job_.groups[g].members.size();
    });
    for (const std::uint32_t g : order) {
      const std::span<const Lane> lanes = matching_.lanes({g});
      std::map<std::size_t, std::vector<double>> late;
      const Lane* shortest = nullptr;
      for (const Lane& lane : lanes)
        if (lane.dump != nullptr && !lane.slots.empty() &&
            (shortest == nullptr ||
             lane.last_enqueued < shortest->last_enqueued))
          shortest = &lane;
      if (shortest == nullptr)
        continue;
      std::size_t used = 0;
      for (auto slot = shortest->slots.rbegin();
           slot != shortest->slots.rend() && used < kEnough; ++slot) {
        std::vector<std::pair<std::size_t, double>> ends;
        std::vector<double> sure;
        std::vector<double> all;
        for (const Lane& lane : lanes) {
          const Slot* const own = lane.find(slot->sequence);
          if (own == nullptr || !own->done ||
              !matching_.proves_all_joined(lane, *own) ||
              !lane.dump->entries.retired(own->closing))
            continue;
          const std::int64_t end = lane.dump->entries.completed(own->closing);
          if (end == 0)
            continue;
          const std::size_t rank = place_of(lane);
          const auto time =
              static_cast<double>(elapsed(motion_.offsets[rank], end));
          ends.emplace_back(rank, time);
          (known[rank] ? sure : all).push_back(time);
        }
        if (ends.size() < 2)
          continue;
        ++used;
        const double truth = sure.empty() ? median(all) : median(sure);
        for (const auto& [rank, time] : ends)
          late[rank].push_back(time - truth);
      }
      for (auto& [rank, times] : late) {
        const double off = median(times);
        if (!known[rank] && (off > kClear || off < -kClear))
          motion_.offsets[rank] = static_cast<std::int64_t>(off);
        known[rank] = 1;
      }
    }
  }

  void count() {
    std::vector<double> silent;
    std::vector<double> stretches;
    std::vector<double> gaps;
    std::vector<std::int64_t> moments;
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      const RankDump& dump = job_.ranks[rank];
      const std::int64_t latest = matching_.latest(rank);
      motion_.moments[rank] =
          latest == 0 ? 0 : elapsed(motion_.offsets[rank], latest);
      if (!dump.complete || dump.entries.empty())
        continue;
      ++motion_.complete;
      if (motion_.older[rank] || (lagging_[rank] && motion_.alive[rank]))
        motion_.early[rank] = 1;
      motion_.older_count += motion_.older[rank] ? 1 : 0;
      motion_.early_count += motion_.early[rank] ? 1 : 0;
      motion_.lagging_count += !motion_.early[rank] && lagging_[rank] ? 1 : 0;
      motion_.alive_count +=
          !motion_.early[rank] && motion_.alive[rank] ? 1 : 0;
      if (const std::optional<Pulse> pulse =
              pulse_of(dump.entries, matching_.pace(rank).mean_gap_ns)) {
        silent.push_back(pulse->silent);
        stretches.push_back(pulse->stretch);
        motion_.expected_alive += motion_.early[rank] ? 0 : pulse->alive;
      }
      if (const std::int64_t gap = matching_.pace(rank).mean_gap_ns; gap > 0)
        gaps.push_back(static_cast<double>(gap));
      if (latest != 0)
        moments.push_back(motion_.moments[rank]);
    }
    if (silent.size() * 2 > motion_.complete) {
      motion_.silent = median(silent);
      motion_.stretch_ns = static_cast<std::int64_t>(median(stretches));
    }
    if (gaps.size() > 1)
      motion_.gap_ns = static_cast<std::int64_t>(median(gaps));
    if (!moments.empty())
      motion_.apart_ns = std::max<std::int64_t>(
          0, elapsed(std::ranges::min(moments), std::ranges::max(moments)));
  }

  // What the oldest pending operation of each rank tells where start times are
  // recorded: what waits for others has started, and what has started is seen
  // to be so when it is dumped, which tells for how long it has waited.
  void find_ages() {
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      const RankDump& dump = job_.ranks[rank];
      if (!dump.complete || motion_.early[rank] || !matching_.has_starts(rank))
        continue;
      const std::optional<std::uint32_t> oldest = oldest_pending(rank);
      if (!oldest)
        continue;
      if (dump.entries.state(*oldest) == State::kScheduled)
        ++motion_.computing_count;
      if (dump.entries.state(*oldest) != State::kStarted ||
          motion_.longest_ns == 0)
        continue;
      const std::int64_t age =
          elapsed(dump.entries.created(*oldest), matching_.latest(rank));
      if (age > 20 * kWatchdogPoll && age / 3 > motion_.longest_ns)
        ++motion_.standing_count;
      else if (age <= std::max(20 * kWatchdogPoll, motion_.longest_ns / 2 * 3))
        ++motion_.fresh_count;
      else
        ++motion_.unsure_count;
    }
  }

  std::optional<std::uint32_t> oldest_pending(std::size_t rank) const {
    const RankDump& dump = job_.ranks[rank];
    std::optional<std::uint32_t> oldest;
    const auto see = [&oldest](std::uint32_t entry) {
      oldest = std::min(oldest.value_or(entry), entry);
    };
    for (const Transfer& transfer : matching_.transfers(rank))
      if (!transfer.done)
        see(transfer.closing);
    for (const GroupId group : dump.groups)
      if (const Lane* const lane = matching_.lane(group, dump.rank))
        if (const Slot* const pending = lane->first_pending())
          see(pending->closing);
    return oldest;
  }

  const Matching& matching_;
  const Job& job_;
  Motion motion_;
  std::vector<std::int64_t> longest_;
  std::vector<char> lagging_;
};

}  // namespace

bool Motion::moved() const {
  if (complete < 2)
    return false;
  // A fault leaves at most a minority of dumps early.
  if ((early_count + lagging_count) * 2 >= complete && older_count < complete)
    return true;
  // One may be alive because it dumped when it raised; several, because they
  // were asked early. A job that moves has about as many as it used to.
  return static_cast<double>(alive_count) * 2 >= expected_alive &&
         (alive_count > 2 || (alive_count > 1 && alive_count * 4 >= complete));
}

bool Motion::goes_on() const {
  return fresh_count > standing_count ||
         computing_count > standing_count + fresh_count + unsure_count;
}

Motion find_motion(const Matching& matching) {
  return Finder(matching).find();
}

}  // namespace postflight
