// A verdict names the ranks that keep the others from going on. That can be
// checked: change what they did, as little as possible, and see whether the
// others finish all that their dumps list. If somebody still waits, more is
// wrong than the verdict says; if everybody would have gone on anyway, that
// rank is not what they wait for.
//
// The replay runs the operations that are not done. Each rank has a queue of
// them, in the order of its calls; a batch counts as one. An operation ends
// when it is at the head of the queue of all ranks that called it, when the
// members that did not call it have come to it, and if the calls can work
// together. Then the next one is at the head. A rank whose queue has become
// empty was only held up: it goes on and joins whatever others wait in. A rank
// that waits for nothing from the beginning does not, for it had the time to.
//
// What a rank at fault would have done otherwise depends on the kind:
//
//   never joined, no dump        it joins what others wait in
//   stalled device               its operations end as on other devices
//   type, size, dtype            it calls what the others call, in their order
//   order, point-to-point        it calls everything in time, in any order; the
//                                other side of its transfers is there
//
// For example, ranks 0 to 6 wait in all_reduce #45, and rank 5 came to #44. If
// it had joined #45, all would go on to #46. Had the verdict accused rank 6,
// which waits in #45 too, the replay would stop where it began.
//
// A rank is proven to be at fault if its change alone is enough for everybody
// to finish; or, of several, if with the changes of all everybody does and
// without its own somebody does not. Without any change, the operation that the
// verdict names must not end.
//
// What the replay can't know: a member whose dump is missing, cut off, stale or
// overwritten there is taken to do its part, unless it is accused. An operation
// that all have joined ends, so it has no explanation for a network that stands
// still. It runs a rank's operations one after the other, though those of
// different groups may overtake each other. That ranks of a cycle could be
// exchanged shows in the proofs: any of them breaks it. Rejected: replaying
// what is done as well, to explain late effects of an early mistake; its dumps
// are mostly overwritten.
#include "flight/diagnosis/replay.h"

#include <algorithm>
#include <span>

namespace postflight {

Replay::Replay(const Case& facts, const Verdict& verdict, ChangeKind kind)
    : facts_(facts),
      matching_(facts.matching),
      kind_(kind),
      accused_(facts.graph.world.size(), 0),
      queues_(facts.graph.world.size()) {
  for (const Rank rank : verdict.culprits)
    accused_[facts.graph.place(rank)] = 1;
  for (std::uint32_t g = 0; g < facts.job.groups.size(); ++g)
    add_collectives({g});
  add_transfers();
  order_units();
  for (PendingOperation& operation : operations_)
    operation.disagrees = disagrees(operation, {});
}

const PendingOperation* Replay::missed_by(std::uint32_t rank,
                                          std::optional<Rank> teller) const {
  const PendingOperation* found = nullptr;
  const auto weight = [&](const PendingOperation& one) {
    return std::pair(one.units.size(),
                     std::ranges::any_of(one.units, [&](std::uint32_t unit) {
                       return facts_.graph.world[units_[unit].rank] == teller;
                     }));
  };
  for (const PendingOperation& one : operations_)
    if ((std::ranges::binary_search(one.absent, rank) ||
         std::ranges::binary_search(one.unknown, rank)) &&
        !one.units.empty() &&
        (found == nullptr || weight(one) > weight(*found)))
      found = &one;
  return found;
}

const PendingOperation* Replay::oldest_of(std::uint32_t rank) const {
  return queues_[rank].empty()
             ? nullptr
             : &operations_[units_[queues_[rank][0]].operations[0]];
}

std::uint32_t Replay::caller(const PendingOperation& operation) const {
  return units_[operation.units[0]].rank;
}

std::optional<std::int64_t> Replay::next_after(
    GroupId group, std::int64_t sequence,
    const std::vector<char>& ranks) const {
  std::optional<std::int64_t> next;
  for (const PendingOperation& one : operations_)
    if (one.group == group && !one.transfer && one.sequence > sequence &&
        (!next || one.sequence < *next) &&
        std::ranges::any_of(one.units, [&](std::uint32_t unit) {
          return ranks[units_[unit].rank] != 0;
        }))
      next = one.sequence;
  return next;
}

std::uint32_t Replay::unit_of(std::uint32_t rank, std::uint32_t closing) {
  const auto [found, is_new] = unit_numbers_.try_emplace(
      {rank, closing}, static_cast<std::uint32_t>(units_.size()));
  if (is_new) {
    units_.push_back({.rank = rank, .closing = closing, .operations = {}});
    queues_[rank].push_back(found->second);
  }
  return found->second;
}

void Replay::call(std::uint32_t operation, std::uint32_t rank,
                  std::uint32_t closing) {
  const std::uint32_t unit = unit_of(rank, closing);
  units_[unit].operations.push_back(operation);
  operations_[operation].units.push_back(unit);
}

void Replay::add_collectives(GroupId group) {
  std::map<std::int64_t, std::uint32_t> numbers;
  for (const Lane& lane : matching_.lanes(group)) {
    if (lane.first_pending() == nullptr)
      continue;
    const std::uint32_t rank = facts_.graph.place(lane.rank);
    std::size_t count = 0;
    for (const Slot& slot : lane.slots) {
      if (slot.done)
        continue;
      if (++count > kMostUnits)
        break;
      const auto [found, is_new] = numbers.try_emplace(
          slot.sequence, static_cast<std::uint32_t>(operations_.size()));
      if (is_new)
        operations_.push_back({.group = group,
                               .sequence = slot.sequence,
                               .entry = slot.entry,
                               .units = {},
                               .absent = {},
                               .unknown = {}});
      call(found->second, rank, slot.closing);
    }
  }
  if (numbers.empty())
    return;
  const bool open = !facts_.job.group(group).configured;
  for (const auto& [sequence, number] : numbers) {
    PendingOperation& operation = operations_[number];
    for (const Lane& lane : matching_.lanes(group)) {
      const std::uint32_t rank = facts_.graph.place(lane.rank);
      switch (presence(lane, sequence)) {
        case Presence::kAbsent:
          operation.absent.push_back(rank);
          break;
        case Presence::kNoDump:
        case Presence::kUnknown:
          operation.unknown.push_back(rank);
          break;
        default:
          break;
      }
    }
    // A group that is in no pg_config may have members without a dump.
    for (std::uint32_t rank = 0; open && rank < accused_.size(); ++rank)
      if (accused_[rank] != 0 &&
          facts_.job.find(facts_.graph.world[rank]) == nullptr)
        operation.unknown.push_back(rank);
    std::ranges::sort(operation.absent);
    std::ranges::sort(operation.unknown);
  }
}

void Replay::add_transfers() {
  for (std::uint32_t r = 0; r < facts_.job.ranks.size(); ++r) {
    const std::uint32_t own = facts_.graph.place(facts_.job.ranks[r].rank);
    std::size_t count = 0;
    for (const Transfer& transfer : matching_.transfers(r)) {
      if (transfer.done || transfer.other == Presence::kDone)
        continue;
      if (++count > kMostUnits)
        break;
      if (transfer.partner != Transfer::kNone && !transfer.send)
        continue;  // comes with its send, if that is among the first
      const auto number = static_cast<std::uint32_t>(operations_.size());
      operations_.push_back({.group = transfer.group,
                             .transfer = true,
                             .send = transfer.send,
                             .entry = transfer.entry,
                             .units = {},
                             .absent = {},
                             .unknown = {}});
      call(number, own, transfer.closing);
      if (transfer.peer.value < 0)
        continue;
      const std::uint32_t peer = facts_.graph.place(transfer.peer);
      if (transfer.partner != Transfer::kNone)
        call(number, peer, receive_of(transfer).closing);
      else if (transfer.other == Presence::kAbsent)
        operations_[number].absent.push_back(peer);
      else if (transfer.other != Presence::kPassed)
        operations_[number].unknown.push_back(peer);
    }
  }
}

const Transfer& Replay::receive_of(const Transfer& send) const {
  const auto peer = static_cast<std::uint32_t>(facts_.job.find(send.peer) -
                                               facts_.job.ranks.data());
  return matching_.transfer({peer, send.partner});
}

void Replay::order_units() {
  for (std::vector<std::uint32_t>& queue : queues_) {
    std::ranges::sort(queue, {},
                      [&](std::uint32_t unit) { return units_[unit].closing; });
    // The rest is as if the rank had gone on.
    for (std::size_t i = kMostUnits; i < queue.size(); ++i)
      for (const std::uint32_t operation : units_[queue[i]].operations)
        std::erase(operations_[operation].units, queue[i]);
    queue.resize(std::min(queue.size(), kMostUnits));
  }
}

bool Replay::disagrees(const PendingOperation& operation,
                       const std::vector<char>& adopted) const {
  const auto skips = [&](Rank rank) {
    return !adopted.empty() && adopted[facts_.graph.place(rank)] != 0;
  };
  std::optional<Disagreement> found;
  if (operation.transfer) {
    if (operation.units.size() < 2)
      return false;
    std::vector<Passed> sides;
    for (const std::uint32_t unit : operation.units) {
      const Rank rank = facts_.graph.world[units_[unit].rank];
      if (skips(rank))
        return false;
      sides.push_back({rank, {}});
    }
    const auto transfers = matching_.transfers(static_cast<std::size_t>(
        facts_.job.find(sides[0].rank) - facts_.job.ranks.data()));
    const Transfer& send = *std::ranges::lower_bound(transfers, operation.entry,
                                                     {}, &Transfer::entry);
    sides[0].call = call_at(sides[0].rank, send.entry);
    sides[1].call = call_at(sides[1].rank, receive_of(send).entry);
    found = matching_.calls().compare(sides[0], sides[1]);
  } else {
    Row row = {.sequence = operation.sequence, .members = {}};
    const std::span<const Lane> lanes = matching_.lanes(operation.group);
    for (std::uint32_t i = 0; i < lanes.size(); ++i)
      if (const Slot* const slot = lanes[i].find(operation.sequence);
          slot != nullptr && !skips(lanes[i].rank))
        row.members.push_back({i, slot});
    if (row.members.size() > 1)
      found = matching_.compare(operation.group, row);
  }
  return found && found->blocks;
}

CallId Replay::call_at(Rank rank, std::uint32_t entry) const {
  return facts_.job.find(rank)->entries.call(entry);
}

// One replay. Each operation counts what it still waits for.
class Replay::Run {
 public:
  Run(const Replay& replay, const std::vector<char>& changed)
      : replay_(replay),
        changed_(changed),
        waits_for_(replay.operations_.size(), 0),
        left_(replay.units_.size(), 0),
        heads_(replay.queues_.size(), 0),
        wanted_(replay.queues_.size()) {
    count_conditions();
    for (std::uint32_t rank = 0; rank < replay_.queues_.size(); ++rank)
      start(rank);
    while (!ready_.empty()) {
      const std::uint32_t operation = ready_.back();
      ready_.pop_back();
      for (const std::uint32_t unit : replay_.operations_[operation].units)
        if (--left_[unit] == 0)
          advance(replay_.units_[unit].rank);
    }
  }

  bool ended(std::uint32_t operation) const {
    return waits_for_[operation] == 0;
  }

  std::vector<char> stuck() const {
    std::vector<char> found(heads_.size(), 0);
    for (std::uint32_t rank = 0; rank < found.size(); ++rank)
      for (const std::uint32_t unit : replay_.queues_[rank])
        if (left_[unit] > 0)
          found[rank] = 1;
    return found;
  }

 private:
  bool is(std::uint32_t rank, bool changed) const {
    return replay_.accused_[rank] != 0 && (changed_[rank] != 0) == changed;
  }
  // Whether the rank calls everything in time.
  bool in_time(std::uint32_t rank) const {
    return is(rank, true) && (replay_.kind_ == ChangeKind::kCallsAsOthers ||
                              replay_.kind_ == ChangeKind::kPartnerAppears);
  }

  void count_conditions() {
    for (std::uint32_t i = 0; i < replay_.operations_.size(); ++i) {
      const PendingOperation& operation = replay_.operations_[i];
      waits_for_[i] += operation.units.size();
      for (const std::uint32_t unit : operation.units)
        ++left_[unit];
      const bool answered =
          operation.transfer &&
          std::ranges::any_of(operation.units, [&](std::uint32_t unit) {
            return in_time(replay_.units_[unit].rank);
          });
      for (const std::uint32_t rank : operation.absent)
        if (!in_time(rank) && !answered) {
          ++waits_for_[i];
          wanted_[rank].push_back(i);
        }
      for (const std::uint32_t rank : operation.unknown)
        if (is(rank, false))
          ++waits_for_[i];  // for good
      if (operation.disagrees && (replay_.kind_ != ChangeKind::kCallsAsOthers ||
                                  replay_.disagrees(operation, changed_)))
        ++waits_for_[i];
    }
  }

  void start(std::uint32_t rank) {
    const bool stalled =
        replay_.kind_ == ChangeKind::kDeviceFinishes && is(rank, false);
    const std::vector<std::uint32_t>& queue = replay_.queues_[rank];
    if (stalled)
      return;
    if (queue.empty()) {
      if (is(rank, true))
        go_on(rank);
      return;
    }
    if (!in_time(rank))
      return enter(queue[0]);
    for (const std::uint32_t unit : queue)
      enter(unit);
  }

  void enter(std::uint32_t unit) {
    for (const std::uint32_t operation : replay_.units_[unit].operations)
      meet(operation);
  }

  void meet(std::uint32_t operation) {
    if (--waits_for_[operation] == 0)
      ready_.push_back(operation);
  }

  void advance(std::uint32_t rank) {
    const std::vector<std::uint32_t>& queue = replay_.queues_[rank];
    ++heads_[rank];
    if (heads_[rank] == queue.size()) {
      if (!is(rank, false))
        go_on(rank);
    } else if (!in_time(rank)) {
      enter(queue[heads_[rank]]);
    }
  }

  void go_on(std::uint32_t rank) {
    for (const std::uint32_t operation : std::exchange(wanted_[rank], {}))
      meet(operation);
  }

  const Replay& replay_;
  const std::vector<char>& changed_;
  std::vector<std::size_t> waits_for_;  // conditions of each operation
  std::vector<std::size_t> left_;       // operations of each unit
  std::vector<std::size_t> heads_;      // units that each rank is done with
  std::vector<std::vector<std::uint32_t>> wanted_;  // operations, by rank
  std::vector<std::uint32_t> ready_;
};

std::vector<char> Replay::run(const std::vector<char>& changed) const {
  return Run(*this, changed).stuck();
}

bool Replay::ends_anyway(GroupId group, std::int64_t sequence) const {
  const Run run(*this, std::vector<char>(accused_.size(), 0));
  for (std::uint32_t i = 0; i < operations_.size(); ++i)
    if (operations_[i].group == group && operations_[i].sequence == sequence &&
        !operations_[i].transfer && run.ended(i))
      return true;
  return false;
}

}  // namespace postflight
