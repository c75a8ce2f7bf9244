// There is no clock to step. A call's end follows from the times at which its
// members became ready, and those from the ends of the calls before them, so
// times are propagated along these dependencies. Calls that never get a time
// are those that hang.
#include "synthetic/simulation.h"

#include <algorithm>
#include <map>

namespace postflight::synthetic {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
// One stream for each axis, and one for each neighbour's plain transfers.
constexpr std::size_t kStreams = kAxes + 2;

// A call as the device sees it.
struct Work {
  std::uint32_t record = kNone;  // the one that has its state
  const Action* action = nullptr;
  std::array<std::uint32_t, 2> after = {kNone, kNone};
  std::int64_t lag = 0;  // device time to spend before it
};

struct Stream {
  std::deque<Work> queue;  // the front one may be in flight
  bool in_flight = false;
  bool dead = false;
  std::int64_t free_at = 0;
  int unmatched = 0;        // transfers of the one in flight
  std::int64_t latest = 0;  // the other side's moments
};

struct Posted {
  std::uint8_t stream = 0;
  std::int64_t ready = 0;
};

struct RankState {
  int step = 0;
  std::size_t next = 0;  // action of the step
  std::int64_t host = 0;
  bool waiting = false;  // at a host sync
  bool stopped = false;
  std::uint32_t pending = 0;
  std::int64_t last_end = 0;
  std::array<Stream, kStreams> streams;
  std::uint32_t last_sync = kNone;
  std::uint32_t last_joined = kNone;
  std::uint32_t last_beside = kNone;
  std::int64_t lag = 0;
  std::array<std::int32_t, kAxes> sequence = {};
  std::array<std::int32_t, kAxes> p2p_sequence = {};
  std::array<std::int32_t, kAxes> operation_id = {};
  std::array<std::vector<std::uint32_t>, kAxes> by_sequence;
  // [next stage?][send?]
  std::vector<Posted> posted[2][2];
};

// The ranks' arrivals at one collective of a group.
struct Meeting {
  std::uint32_t arrived = 0;
  SiteId site = kNone;
  bool differs = false;
  bool stuck = false;
  std::int64_t latest = 0;
};

struct Ended {
  int rank;
  std::size_t stream;
  std::int64_t at;
};

class Simulation {
 public:
  Simulation(const Schedule& schedule, const Topology& topology,
             const SimulationOptions& options)
      : schedule_(schedule),
        topology_(topology),
        options_(options),
        random_(options.seed),
        ranks_(topology.places.size()),
        meetings_(topology.groups.size()) {
    done_.records.resize(ranks_.size());
    done_.struck.resize(ranks_.size(), kNever);
  }

  Simulated run();

 private:
  RankState& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::vector<Record>& records(int rank) {
    return done_.records[static_cast<std::size_t>(rank)];
  }

  void strike(int rank, std::int64_t when) {
    std::int64_t& struck = done_.struck[static_cast<std::size_t>(rank)];
    if (struck == kNever)
      struck = when;
  }

  void advance(int rank);
  std::int64_t work(const Action& action);
  void perform(int rank, const Action& action);
  void call_collective(int rank, const Action& action);
  void call_transfers(int rank, const Action& action);
  void enqueue(int rank, const Action& action, std::size_t stream);
  Record& record(int rank, const Action& action, RecordKind kind, SiteId site);

  void start(int rank, std::size_t stream);
  bool is_done(int rank, std::uint32_t index) {
    return index == kNone || records(rank)[index].completed != kNever;
  }
  void arrive(int rank, const Work& work);
  void end_meeting(const JobGroup& group, std::size_t sequence,
                   const Meeting& meeting);
  SiteId majority(const JobGroup& group, std::size_t sequence);
  void post(int rank, std::size_t stream, const Work& work);
  void end(const Ended& ended);

  const Schedule& schedule_;
  const Topology& topology_;
  SimulationOptions options_;
  Random random_;
  std::vector<RankState> ranks_;
  std::vector<std::vector<Meeting>> meetings_;  // by group and sequence
  std::deque<Ended> ended_;
  Simulated done_;
};

Simulated Simulation::run() {
  for (int rank = 0; rank < topology_.world(); ++rank) {
    state(rank).host = random_.between(0, 2'000'000);
    advance(rank);
  }
  while (!ended_.empty()) {
    const Ended next = ended_.front();
    ended_.pop_front();
    end(next);
  }
  for (const RankState& rank : ranks_) {
    done_.end = std::max({done_.end, rank.host, rank.last_end});
    done_.hung |= rank.stopped || rank.pending > 0 || rank.waiting;
  }
  return std::move(done_);
}

void Simulation::advance(int rank) {
  RankState& at = state(rank);
  while (!at.stopped && at.step < schedule_.steps()) {
    const Actions& actions =
        schedule_.actions(rank, topology_.place(rank).stage, at.step);
    if (at.next == actions.size()) {
      ++at.step;
      at.next = 0;
      continue;
    }
    const Action& action = actions[at.next];
    if (action.host_stops) {
      strike(rank, at.host);
      at.stopped = true;
      return;
    }
    if (action.kind == ActionKind::kHostSync ||
        (options_.blocking && action.communicates())) {
      if (at.pending > 0) {
        at.waiting = true;
        return;
      }
      at.host = std::max(at.host, at.last_end);
    }
    ++at.next;
    perform(rank, action);
  }
}

std::int64_t Simulation::work(const Action& action) {
  const std::int64_t usual =
      action.nanoseconds * options_.compute_scale + random_.between(0, 20'000);
  if (options_.uneven_percent == 0)
    return usual;
  return usual + usual / 100 * random_.between(0, options_.uneven_percent);
}

void Simulation::perform(int rank, const Action& action) {
  RankState& at = state(rank);
  at.host += action.late;
  switch (action.kind) {
    case ActionKind::kHostSync:
      at.host += random_.between(20'000, 80'000);
      return;
    case ActionKind::kJoin:
      at.last_joined = at.last_beside;
      return;
    case ActionKind::kCompute:
      at.host += random_.between(30'000, 60'000);
      at.lag += work(action);
      return;
    case ActionKind::kCollective:
    case ActionKind::kCoalesced:
      at.host += random_.between(40'000, 90'000);
      call_collective(rank, action);
      return;
    case ActionKind::kTransfers:
      at.host += random_.between(40'000, 90'000);
      call_transfers(rank, action);
      return;
  }
}

Record& Simulation::record(int rank, const Action& action, RecordKind kind,
                           SiteId site) {
  RankState& at = state(rank);
  const auto axis = static_cast<std::size_t>(action.axis);
  at.host += 4'000;
  records(rank).push_back({.created = at.host,
                           .sequence = at.sequence[axis],
                           .p2p_sequence = at.p2p_sequence[axis],
                           .operation_id = at.operation_id[axis],
                           .site = site,
                           .axis = action.axis,
                           .kind = kind});
  return records(rank).back();
}

void Simulation::call_collective(int rank, const Action& action) {
  RankState& at = state(rank);
  const auto axis = static_cast<std::size_t>(action.axis);
  ++at.sequence[axis];
  ++at.operation_id[axis];
  const bool coalesced = action.kind == ActionKind::kCoalesced;
  if (coalesced)
    record(rank, action, RecordKind::kCoalescedMember, action.site);
  record(rank, action,
         coalesced ? RecordKind::kClosing : RecordKind::kCollective,
         action.site);
  at.by_sequence[axis].push_back(
      static_cast<std::uint32_t>(records(rank).size() - 1));
  enqueue(rank, action, axis);
}

void Simulation::call_transfers(int rank, const Action& action) {
  RankState& at = state(rank);
  const auto axis = static_cast<std::size_t>(action.axis);
  ++at.p2p_sequence[axis];
  const int position = topology_.place(rank).position[axis];
  for (int i = 0; i < action.transfer_count; ++i) {
    const Transfer& transfer = action.transfers[static_cast<std::size_t>(i)];
    ++at.operation_id[axis];
    Record& made =
        record(rank, action,
               action.batched ? RecordKind::kMember : RecordKind::kTransfer,
               transfer.site);
    made.peer = static_cast<std::int16_t>(position + transfer.offset);
    made.send = transfer.send;
  }
  if (action.batched)
    record(rank, action, RecordKind::kClosing, 0).p2p_batch = true;
  enqueue(
      rank, action,
      action.batched ? axis : kAxes + (action.transfers[0].offset > 0 ? 1 : 0));
}

void Simulation::enqueue(int rank, const Action& action, std::size_t stream) {
  RankState& at = state(rank);
  const auto index = static_cast<std::uint32_t>(records(rank).size() - 1);
  if (action.host_blocks) {
    records(rank)[index].unlaunched = true;
    at.stopped = true;
    return;
  }
  at.streams[stream].queue.push_back(
      {index, &action, {at.last_sync, at.last_joined}, at.lag});
  ++at.pending;
  if (action.beside) {
    at.last_beside = index;
  } else {
    at.last_sync = index;
    at.lag = 0;
  }
  start(rank, stream);
}

void Simulation::start(int rank, std::size_t stream) {
  RankState& at = state(rank);
  Stream& here = at.streams[stream];
  if (here.in_flight || here.dead || here.queue.empty())
    return;
  const Work& work = here.queue.front();
  if (!is_done(rank, work.after[0]) || !is_done(rank, work.after[1]))
    return;
  if (work.action->device_stops) {
    strike(rank, at.host);
    for (Stream& each : at.streams)
      each.dead = true;
    return;
  }
  Record& its = records(rank)[work.record];
  its.ready = std::max(its.created + 5'000, here.free_at);
  for (const std::uint32_t before : work.after)
    if (before != kNone)
      its.ready =
          std::max(its.ready, records(rank)[before].completed + work.lag);
  here.in_flight = true;
  if (work.action->kind == ActionKind::kTransfers)
    post(rank, stream, work);
  else
    arrive(rank, work);
}

void Simulation::arrive(int rank, const Work& work) {
  const Record& its = records(rank)[work.record];
  const auto index =
      static_cast<std::size_t>(topology_.group_of(rank, its.axis));
  const JobGroup& group = topology_.groups[index];
  const auto sequence = static_cast<std::size_t>(its.sequence - 1);
  if (meetings_[index].size() <= sequence)
    meetings_[index].resize(sequence + 1);
  Meeting& meeting = meetings_[index][sequence];
  if (meeting.site == kNone)
    meeting.site = its.site;
  else if (meeting.site != its.site &&
           !schedule_.sites()[meeting.site].agrees_with(
               schedule_.sites()[its.site]))
    meeting.differs = true;
  meeting.stuck |= work.action->never_ends;
  meeting.latest = std::max(meeting.latest, its.ready);
  if (++meeting.arrived == group.members.size() && !meeting.stuck)
    end_meeting(group, sequence, meeting);
}

SiteId Simulation::majority(const JobGroup& group, std::size_t sequence) {
  std::map<SiteId, int> votes;
  const auto axis = static_cast<std::size_t>(group.axis);
  for (const int member : group.members)
    ++votes[records(member)[state(member).by_sequence[axis][sequence]].site];
  return std::ranges::max_element(votes, {},
                                  [](const auto& vote) { return vote.second; })
      ->first;
}

void Simulation::end_meeting(const JobGroup& group, std::size_t sequence,
                             const Meeting& meeting) {
  if (meeting.differs && options_.disagreement == Disagreement::kAllStick)
    return;
  const SiteId most = meeting.differs ? majority(group, sequence) : kNone;
  const std::int64_t end = meeting.latest + random_.between(60'000, 400'000) *
                                                options_.operation_scale;
  const auto axis = static_cast<std::size_t>(group.axis);
  for (const int member : group.members) {
    Stream& stream = state(member).streams[axis];
    const Work& work = stream.queue.front();
    const bool sticks =
        meeting.differs &&
        options_.disagreement == Disagreement::kMinoritySticks &&
        records(member)[work.record].site != most;
    if (work.action->device_fails) {
      strike(member, end);
      for (Stream& each : state(member).streams)
        each.dead = true;
    } else if (!sticks) {
      ended_.push_back({member, axis, end + random_.between(0, 5'000)});
    }
  }
}

void Simulation::post(int rank, std::size_t stream, const Work& work) {
  RankState& at = state(rank);
  Stream& here = at.streams[stream];
  const std::int64_t ready = records(rank)[work.record].ready;
  const auto axis = static_cast<std::size_t>(Axis::kPipeline);
  const auto group =
      static_cast<std::size_t>(topology_.group_of(rank, Axis::kPipeline));
  const int position = topology_.place(rank).position[axis];
  here.unmatched = work.action->transfer_count;
  here.latest = ready;
  for (int i = 0; i < work.action->transfer_count; ++i) {
    const Transfer& transfer =
        work.action->transfers[static_cast<std::size_t>(i)];
    const bool next = transfer.offset > 0;
    auto& mine = at.posted[next][transfer.send];
    const std::size_t place = mine.size();
    mine.push_back({static_cast<std::uint8_t>(stream), ready});
    const int peer =
        topology_.groups[group]
            .members[static_cast<std::size_t>(position + transfer.offset)];
    auto& theirs = state(peer).posted[!next][!transfer.send];
    if (place >= theirs.size() || work.action->never_ends)
      continue;
    const Posted& other = theirs[place];
    Stream& there = state(peer).streams[other.stream];
    here.latest = std::max(here.latest, other.ready);
    there.latest = std::max(there.latest, ready);
    --here.unmatched;
    if (--there.unmatched == 0)
      ended_.push_back({peer, other.stream,
                        there.latest + random_.between(60'000, 150'000) *
                                           options_.operation_scale *
                                           options_.operation_scale});
  }
  if (here.unmatched == 0)
    ended_.push_back({rank, stream,
                      here.latest + random_.between(60'000, 150'000) *
                                        options_.operation_scale});
}

void Simulation::end(const Ended& ended) {
  RankState& at = state(ended.rank);
  Stream& stream = at.streams[ended.stream];
  records(ended.rank)[stream.queue.front().record].completed = ended.at;
  stream.queue.pop_front();
  stream.in_flight = false;
  stream.free_at = ended.at;
  --at.pending;
  at.last_end = std::max(at.last_end, ended.at);
  for (std::size_t each = 0; each < kStreams; ++each)
    start(ended.rank, each);
  if (at.waiting && at.pending == 0) {
    at.waiting = false;
    advance(ended.rank);
  }
}

}  // namespace

Simulated simulate(const Schedule& schedule, const Topology& topology,
                   const SimulationOptions& options) {
  return Simulation(schedule, topology, options).run();
}

}  // namespace postflight::synthetic
