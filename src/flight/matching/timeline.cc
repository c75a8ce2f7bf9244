// Numbers of collectives are the only thing that can be compared between the
// ranks of a group: records are counted by each rank for itself, rings are
// overwritten at different places, and clocks differ.
//
// A batch (several operations between ncclGroupStart and End) is recorded as
// its members and a closing entry `coalesced`, whose state is the batch's; the
// members' own states mean nothing. The closing entry of a batch of transfers
// repeats the number of the last collective, and is not that collective.
#include "flight/matching/timeline.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <string_view>

#include "base/worker_pool.h"

namespace postflight {
namespace {

bool closes_batch(const Operation& operation) {
  return operation.kind == OperationKind::kCoalesced;
}

}  // namespace

const Slot* Lane::find(std::int64_t sequence) const {
  if (slots.empty() || sequence < slots.front().sequence)
    return nullptr;
  // Mostly there are no gaps.
  const std::uint64_t place =
      static_cast<std::uint64_t>(sequence) -
      static_cast<std::uint64_t>(slots.front().sequence);
  if (place < slots.size() && slots[place].sequence == sequence)
    return &slots[place];
  const auto found =
      std::ranges::lower_bound(slots, sequence, {}, &Slot::sequence);
  return found == slots.end() || found->sequence != sequence ? nullptr
                                                             : &*found;
}

const Slot* Lane::first_pending() const {
  const auto found = std::ranges::find(slots, false, &Slot::done);
  return found == slots.end() ? nullptr : &*found;
}

Presence presence(const Lane& lane, std::int64_t sequence) {
  if (lane.dump == nullptr)
    return Presence::kUnknown;
  if (const Slot* const slot = lane.find(sequence))
    return slot->done ? Presence::kDone : Presence::kPending;
  if (sequence > lane.last_enqueued)
    return lane.dump->complete && !lane.stale ? Presence::kAbsent
                                              : Presence::kUnknown;
  return lane.only_active ? Presence::kDone : Presence::kUnknown;
}

Timeline::Timeline(const Job& job)
    : job_(&job),
      transfers_(job.ranks.size()),
      with_transfers_(job.groups.size()),
      name_completes_(job.tables.text_count()),
      latest_(job.ranks.size()),
      latest_completions_(job.ranks.size()),
      has_starts_(job.ranks.size()) {
  find_backends();
  make_lanes();
  fill_all();
  set_bounds();
  settle_weak();
  find_stale();
}

const Lane* Timeline::lane(GroupId group, Rank rank) const {
  const std::int32_t place = job_->group(group).place(rank);
  return place < 0 ? nullptr
                   : &lanes_[group.value][static_cast<std::size_t>(place)];
}

bool Timeline::completes(const Entry& entry) const {
  return name_completes_[job_->call(entry).name.value] != 0;
}

void Timeline::find_backends() {
  const auto calls = static_cast<std::uint32_t>(job_->tables.call_count());
  operations_.reserve(calls);
  for (std::uint32_t id = 0; id < calls; ++id)
    operations_.push_back(job_->operation(job_->tables.call({id})));
  std::vector<char> completed(calls, 0);
  for (const RankDump& dump : job_->ranks)
    for (std::size_t i = 0; i < dump.entries.size(); ++i)
      if (dump.entries.state(i) == State::kCompleted)
        completed[dump.entries.call(i).value] = 1;
  // Dumps of active work only show none that is completed.
  std::set<std::string_view> completing = {"nccl", "xccl", "hccl"};
  for (std::uint32_t id = 0; id < calls; ++id)
    if (completed[id])
      completing.insert(operations_[id].backend);
  for (std::uint32_t id = 0; id < calls; ++id)
    name_completes_[job_->tables.call({id}).name.value] =
        completing.contains(operations_[id].backend) ? 1 : 0;
}

void Timeline::make_lanes() {
  lanes_.resize(job_->groups.size());
  for (std::size_t g = 0; g < lanes_.size(); ++g)
    for (const Rank member : job_->groups[g].members) {
      Lane& lane = lanes_[g].emplace_back();
      lane.rank = member;
      lane.dump = job_->find(member);
    }
}

bool Timeline::is_done(const RankDump& dump, std::size_t entry) const {
  const Entries& entries = dump.entries;
  const Call& call = job_->tables.call(entries.call(entry));
  if (entries.state(entry) != State::kCompleted)
    return entries.retired(entry) && !name_completes_[call.name.value];
  // What ends only after its time-out was ended by the abort.
  const std::int64_t end = entries.completed(entry);
  return !entries.retired(entry) || call.timeout_ms <= 0 || end == 0 ||
         elapsed(entries.created(entry), end) / 1'000'000 < call.timeout_ms;
}

// A dump of active work only lists nothing that is done, though the status of
// its groups says that something was.
bool Timeline::is_only_active(const RankDump& dump) const {
  for (std::size_t i = 0; i < dump.entries.size(); ++i)
    if (is_done(dump, i))
      return false;
  const bool has_past = std::ranges::any_of(
      dump.statuses,
      [](const GroupStatus& status) { return status.last_completed > 0; });
  const bool starts_late =
      !dump.entries.empty() && dump.entries.sequence(0) > 1;
  return has_past || starts_late;
}

void Timeline::fill_all() {
  const auto calls = static_cast<std::uint32_t>(operations_.size());
  for (std::uint32_t id = 0; id < calls; ++id)
    if (const GroupId group = job_->tables.call({id}).group;
        operations_[id].point_to_point() &&
        group.value < with_transfers_.size())
      with_transfers_[group.value] = 1;
  // A rank fills its own lanes only, so that several can do it at once.
  constexpr std::size_t kAtOnce = 16;
  const std::size_t ranks = job_->ranks.size();
  [[maybe_unused]] const Result<> filled = WorkerPool().map_ordered(
      (ranks + kAtOnce - 1) / kAtOnce,
      [&](std::size_t block) {
        const std::size_t end = std::min(ranks, (block + 1) * kAtOnce);
        for (std::size_t i = block * kAtOnce; i < end; ++i)
          fill(i);
        return true;
      },
      [](std::size_t, bool) -> Result<> { return {}; });
  assert(filled);
}

void Timeline::fill(std::size_t rank_index) {
  const RankDump& dump = job_->ranks[rank_index];
  const bool only_active = is_only_active(dump);
  std::vector<Lane*> lanes(dump.groups.size());  // nullptr: it is no member
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const GroupId group = dump.groups[i];
    const std::int32_t place = job_->group(group).place(dump.rank);
    if (place < 0)
      continue;
    lanes[i] = &lanes_[group.value][static_cast<std::size_t>(place)];
    lanes[i]->only_active = only_active;
  }
  std::vector<Transfer>& transfers = transfers_[rank_index];
  // Where each group's transfers that no closing entry has ended yet begin.
  std::map<GroupId, std::size_t> open;

  std::int64_t latest = 0;
  std::int64_t latest_completion = 0;
  bool has_starts = false;
  GroupId group = {~std::uint32_t{0}};
  Lane* lane_at = nullptr;
  for (std::size_t i = 0; i < dump.entries.size(); ++i) {
    const CallId call_id = dump.entries.call(i);
    const Call& call = job_->tables.call(call_id);
    const Operation& operation = operations_[call_id.value];
    const auto index = static_cast<std::uint32_t>(i);
    latest = std::max({latest, dump.entries.created(i),
                       dump.entries.completed(i), dump.entries.started(i)});
    latest_completion = std::max(latest_completion, dump.entries.completed(i));
    has_starts |= dump.entries.started(i) != 0;
    if (call.group != group) {
      group = call.group;
      const std::size_t place = dump.group_place(group);
      lane_at = place < lanes.size() && dump.groups[place] == group
                    ? lanes[place]
                    : nullptr;
    }
    if (lane_at == nullptr)
      continue;
    Lane& lane = *lane_at;
    const std::int64_t sequence = dump.entries.sequence(i);
    const bool retired = dump.entries.retired(i);
    const bool done = is_done(dump, i);

    if (operation.point_to_point()) {
      const bool send = operation.kind == OperationKind::kSend;
      const std::int32_t peer = send ? operation.destination : operation.source;
      const std::vector<Rank>& members = job_->group(call.group).members;
      open.try_emplace(call.group, transfers.size());
      if (peer >= 0 && static_cast<std::size_t>(peer) < members.size())
        transfers.push_back({call.group,
                             members[static_cast<std::size_t>(peer)], send,
                             index, index, done});
      continue;
    }

    // Does it close a batch of transfers? Then it has their number.
    if (closes_batch(operation)) {
      const auto batch = open.find(call.group);
      const std::int64_t p2p_sequence = dump.entries.p2p_sequence(i);
      bool closed = false;
      if (batch != open.end())
        for (std::size_t t = transfers.size(); t-- > batch->second;) {
          Transfer& transfer = transfers[t];
          if (transfer.group != call.group)
            continue;
          if (dump.entries.p2p_sequence(transfer.entry) != p2p_sequence)
            break;
          transfer.closing = index;
          transfer.done = done;
          closed = true;
        }
      if (batch != open.end())
        open.erase(batch);
      // Its members may have been overwritten: then it repeats a number that
      // is there already, or is the first thing in the ring.
      if (closed || call.point_to_point != 0 ||
          (p2p_sequence > 0 &&
           (lane.slots.empty() ||
            (lane.slots.back().sequence == sequence &&
             dump.entries[lane.slots.back().entry].operation_id !=
                 dump.entries[i].operation_id))))
        continue;
    } else {
      open.erase(call.group);
    }

    if (!lane.slots.empty() && lane.slots.back().sequence == sequence) {
      Slot& slot = lane.slots.back();  // another member of a batch, or its end
      slot.closing = index;
      slot.done = done;
      slot.weak = done && !retired;
      continue;
    }
    if (!lane.slots.empty() && lane.slots.back().sequence > sequence)
      lane.slots.clear();  // the group was made anew
    lane.slots.push_back({.sequence = sequence,
                          .entry = index,
                          .closing = index,
                          .done = done,
                          .weak = done && !retired});
  }
  latest_[rank_index] = latest;
  latest_completions_[rank_index] = latest_completion;
  has_starts_[rank_index] = has_starts ? 1 : 0;
  if (only_active)
    close_batches(dump, transfers);
}

// The members of a batch stay scheduled for ever, so a dump of active work only
// lists them when their closing entry is done and gone.
void Timeline::close_batches(const RankDump& dump,
                             std::vector<Transfer>& transfers) {
  std::set<GroupId> batched;
  for (std::size_t i = 0; i < transfers.size(); ++i)
    if (transfers[i].closing != transfers[i].entry ||
        (i > 0 && transfers[i - 1].group == transfers[i].group &&
         dump.entries[transfers[i - 1].entry].p2p_sequence ==
             dump.entries[transfers[i].entry].p2p_sequence))
      batched.insert(transfers[i].group);
  for (Transfer& transfer : transfers)
    if (transfer.closing == transfer.entry && batched.contains(transfer.group))
      transfer.done = true;
}

void Timeline::set_bounds() {
  for (std::size_t g = 0; g < lanes_.size(); ++g) {
    // What the group is called by the status of its members: each counts its
    // groups for itself, but mostly in the same order.
    std::map<std::int64_t, std::size_t> local_ids;
    for (const Lane& lane : lanes_[g])
      if (lane.dump != nullptr && !lane.slots.empty())
        ++local_ids[job_->call(lane.dump->entries[lane.slots[0].entry])
                        .local_group];
    const auto usual = std::ranges::max_element(
        local_ids, {}, [](const auto& entry) { return entry.second; });

    for (Lane& lane : lanes_[g]) {
      if (lane.dump == nullptr)
        continue;
      std::optional<std::int64_t> local;
      if (!lane.slots.empty())
        local = job_->call(lane.dump->entries[lane.slots[0].entry]).local_group;
      else if (usual != local_ids.end())
        local = usual->first;
      const GroupStatus* status = nullptr;
      for (const GroupStatus& one : lane.dump->statuses)
        if (local && one.local_group == *local)
          status = &one;
      if (lane.dump->entries.empty() && !lane.dump->statuses.empty())
        lane.only_active = true;
      if (!lane.slots.empty())
        lane.last_enqueued = lane.slots.back().sequence;
      // Beyond the entries, its numbers are those of transfers, if there are
      // any.
      if (status != nullptr && !with_transfers_[g] &&
          (lane.only_active || lane.slots.empty()))
        lane.last_enqueued =
            std::max(lane.last_enqueued, status->last_enqueued);
      if (status != nullptr)
        for (Slot& slot : lane.slots)
          if (slot.weak && slot.sequence <= status->last_completed)
            slot.weak = false;
    }
  }
}

// What only reads completed is done if somebody surely is, or if nobody is
// waiting or missing there.
void Timeline::settle_weak() {
  for (std::vector<Lane>& lanes : lanes_) {
    std::set<std::int64_t> numbers;
    for (const Lane& lane : lanes)
      for (const Slot& slot : lane.slots)
        if (slot.weak)
          numbers.insert(slot.sequence);
    std::erase_if(numbers, [&](std::int64_t number) {
      bool firm = false;
      bool unfinished = false;
      for (const Lane& lane : lanes) {
        const Slot* const slot = lane.find(number);
        firm |= slot != nullptr ? slot->done && !slot->weak
                                : presence(lane, number) == Presence::kDone;
        unfinished |= slot != nullptr
                          ? !slot->done
                          : presence(lane, number) == Presence::kAbsent;
      }
      return firm || !unfinished;
    });
    for (Lane& lane : lanes)
      for (Slot& slot : lane.slots)
        if (slot.weak && numbers.contains(slot.sequence))
          slot.done = false;
  }
}

// An all_reduce can't be done before all have joined it. A broadcast can, on
// its root, and so can whatever sends one way only; and a gloo operation that
// failed looks like one that is done.
void Timeline::find_stale() {
  for (std::vector<Lane>& lanes : lanes_) {
    std::int64_t all_joined = 0;
    for (const Lane& lane : lanes)
      for (auto slot = lane.slots.rbegin(); slot != lane.slots.rend(); ++slot) {
        if (slot->sequence <= all_joined)
          break;
        if (!slot->done || slot->weak)
          continue;
        const Entry entry = lane.dump->entries[slot->entry];
        if (!completes(entry) || !operation(entry.call).needs_all())
          continue;
        all_joined = slot->sequence;
        break;
      }
    for (Lane& lane : lanes)
      lane.stale = lane.dump != nullptr && lane.last_enqueued < all_joined;
  }
}

}  // namespace postflight
