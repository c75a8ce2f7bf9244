// Numbers of collectives are the only thing that can be compared between the
// ranks of a group: records are counted by each rank for itself, rings are
// overwritten at different places, and clocks differ. So each member of a group
// has a lane, with a slot for each number that its dump lists.
//
// A number that is not listed was overwritten if the rank has later ones,
// for a rank counts its operations of a group one by one; else the rank did not
// come to it, unless the dump breaks off or is older than those of others.
#include "flight/matching/matching.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "base/worker_pool.h"

namespace postflight {

Matching::Matching(const Job& job, const Context& context)
    : job_(&job),
      calls_(job),
      transfers_(job.ranks.size()),
      status_owners_(job.ranks.size()),
      with_transfers_(job.groups.size()),
      name_completes_(job.tables.text_count()),
      latest_(job.ranks.size()),
      has_starts_(job.ranks.size()),
      paces_(job.ranks.size()) {
  find_backends();
  make_lanes();
  read_ranks(context);
  for (std::vector<Lane>& lanes : lanes_)
    align_incarnations(lanes);
  find_statuses();
  set_bounds();
  for (std::vector<Lane>& lanes : lanes_)
    settle_weak(lanes);
  fill_holes();
  find_stale();
  channels_ = pair_transfers(job, transfers_);
}

EntryRoles Matching::roles(std::size_t rank_index) const {
  return entry_roles(*job_, job_->ranks[rank_index], calls_.operations());
}

const Lane* Matching::lane(GroupId group, Rank rank) const {
  const std::int32_t place = job_->group(group).place(rank);
  return place < 0 ? nullptr
                   : &lanes_[group.value][static_cast<std::size_t>(place)];
}

bool Matching::completes(const Entry& entry) const {
  return name_completes_[job_->call(entry).name.value] != 0;
}

bool Matching::any_pending() const {
  for (const std::vector<Lane>& lanes : lanes_)
    for (const Lane& lane : lanes)
      if (lane.first_pending() != nullptr)
        return true;
  return std::ranges::any_of(transfers_, [](const auto& transfers) {
    return std::ranges::find(transfers, false, &Transfer::done) !=
           transfers.end();
  });
}

void Matching::find_backends() {
  const auto calls = static_cast<std::uint32_t>(job_->tables.call_count());
  std::vector<char> completed(calls, 0);
  for (const RankDump& dump : job_->ranks)
    for (std::size_t i = 0; i < dump.entries.size(); ++i)
      if (dump.entries.state(i) == State::kCompleted)
        completed[dump.entries.call(i).value] = 1;
  // Dumps of active work only show none that is completed.
  std::set<std::string_view> completing = {"nccl", "xccl", "hccl"};
  for (std::uint32_t id = 0; id < calls; ++id)
    if (completed[id])
      completing.insert(operation({id}).backend);
  for (std::uint32_t id = 0; id < calls; ++id) {
    const Call& call = job_->tables.call({id});
    name_completes_[call.name.value] =
        completing.contains(operation({id}).backend) ? 1 : 0;
    if (operation({id}).point_to_point() &&
        call.group.value < with_transfers_.size())
      with_transfers_[call.group.value] = 1;
  }
}

void Matching::make_lanes() {
  lanes_.resize(job_->groups.size());
  for (std::size_t g = 0; g < lanes_.size(); ++g)
    for (const Rank member : job_->groups[g].members) {
      Lane& lane = lanes_[g].emplace_back();
      lane.rank = member;
      lane.dump = job_->find(member);
    }
}

bool Matching::is_done(const RankDump& dump, std::size_t entry) const {
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
bool Matching::is_only_active(const RankDump& dump) const {
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

// Sorts the entries of one rank into the slots of its lanes and its transfers.
class Matching::RankReader {
 public:
  RankReader(Matching& matching, std::size_t rank_index)
      : matching_(matching),
        job_(*matching.job_),
        dump_(job_.ranks[rank_index]),
        rank_index_(rank_index),
        wrapped_(ring_has_wrapped(dump_)),
        transfers_(matching.transfers_[rank_index]) {
    const bool only_active = matching.is_only_active(dump_);
    for (const GroupId group : dump_.groups) {
      const std::int32_t place = job_.group(group).place(dump_.rank);
      Lane* const lane =
          place < 0
              ? nullptr
              : &matching.lanes_[group.value][static_cast<std::size_t>(place)];
      if (lane != nullptr)
        lane->only_active = only_active;
      states_.push_back({.lane = lane, .place = place});
    }
  }

  void read() {
    const EntryRoles roles = matching_.roles(rank_index_);
    const Entries& entries = dump_.entries;
    std::int64_t latest = 0;
    bool has_starts = false;
    Pace& pace = matching_.paces_[rank_index_];
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t retired = 0;
    GroupId group = {~std::uint32_t{0}};
    State* state = nullptr;
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      const std::int64_t created = entries.created(i);
      const std::int64_t completed = entries.completed(i);
      const std::int64_t started = entries.started(i);
      latest = std::max({latest, created, completed, started});
      has_starts |= started != 0;
      if (completed != 0 && created != 0 && entries.retired(i)) {
        pace.longest_ns =
            std::max(pace.longest_ns, elapsed(created, completed));
        first = retired++ == 0 ? created : first;
        last = created;
      }
      const CallId call = entries.call(i);
      const Call& made = job_.tables.call(call);
      if (const GroupId own = made.group; own != group) {
        group = own;
        const std::size_t place = dump_.group_place(group);
        state = place < states_.size() && dump_.groups[place] == group
                    ? &states_[place]
                    : nullptr;
      }
      if (state == nullptr)
        continue;
      if (state->locals.empty() || state->locals.back() != made.local_group)
        state->locals.push_back(made.local_group);
      if (state->lane == nullptr)
        continue;  // not a member of that group
      see(i, *state);
      const EntryRole role = roles.roles[i];
      if (is_collective(role))
        add_collective(i, call, *state);
      else if (role == EntryRole::kSend || role == EntryRole::kReceive)
        add_transfer(i, call, group, roles.decisive(i), *state);
    }
    constexpr std::int64_t kEnough = 4;
    if (retired >= kEnough)
      pace.mean_gap_ns =
          std::max<std::int64_t>(1, elapsed(first, last) / (retired - 1));
    matching_.latest_[rank_index_] = latest;
    matching_.has_starts_[rank_index_] = has_starts ? 1 : 0;
    if (std::ranges::any_of(states_, [](const State& one) {
          return one.lane != nullptr && one.lane->only_active;
        }))
      finish_open_batches();
    name_statuses();
    transfers_.shrink_to_fit();
  }

 private:
  struct State {
    Lane* lane = nullptr;
    std::int32_t place = -1;  // of the rank among the group's members
    bool seen = false;
    std::int64_t sequence = 0;              // of the last entry
    std::vector<std::int64_t> locals = {};  // the group's numbers on this rank
  };

  // Numbers that fall are those of the group's next incarnation.
  void see(std::uint32_t entry, State& state) {
    const std::int64_t sequence = dump_.entries.sequence(entry);
    Lane& lane = *state.lane;
    if (state.seen && sequence < state.sequence) {
      for (const Slot& slot : lane.slots)
        lane.earlier.push_back({lane.last_incarnation(), slot});
      lane.slots.clear();
      lane.begins.push_back(entry);
    }
    state.seen = true;
    state.sequence = sequence;
    lane.bounded = true;
    lane.last_enqueued = sequence;
  }

  void add_collective(std::uint32_t entry, CallId call, const State& state) {
    std::vector<Slot>& slots = state.lane->slots;
    const std::int64_t sequence = dump_.entries.sequence(entry);
    const bool done = matching_.is_done(dump_, entry);
    const bool weak = done && !dump_.entries.retired(entry);
    const bool first = wrapped_ && state.lane->begins.empty();
    const bool closes =
        matching_.operation(call).kind == OperationKind::kCoalesced;
    if (!slots.empty() && slots.back().sequence == sequence) {
      Slot& slot = slots.back();  // another member of a batch, or its end
      std::vector<std::uint32_t>& batched = state.lane->batched;
      if (slot.closing == slot.entry)
        batched.push_back(slot.entry);
      if (!closes)
        batched.push_back(entry);
      slot.closing = entry;
      slot.done = done;
      slot.weak = weak;
      slot.partial = first && slots.size() == 1;
      return;
    }
    slots.push_back({.sequence = sequence,
                     .entry = entry,
                     .closing = entry,
                     .done = done,
                     .weak = weak,
                     .partial = first && slots.empty() && closes});
  }

  void add_transfer(std::uint32_t entry, CallId call, GroupId group,
                    std::uint32_t closing, const State& state) {
    const Operation& operation = matching_.operation(call);
    const bool send = operation.kind == OperationKind::kSend;
    const std::int32_t own = send ? operation.source : operation.destination;
    const std::int32_t other = send ? operation.destination : operation.source;
    const std::vector<Rank>& members = job_.group(group).members;
    const bool known = other >= 0 &&
                       static_cast<std::size_t>(other) < members.size() &&
                       (own < 0 || own == state.place);
    transfers_.push_back(
        {.group = group,
         .peer = known ? members[static_cast<std::size_t>(other)] : Rank{-1},
         .send = send,
         .done = matching_.is_done(dump_, closing),
         .entry = entry,
         .closing = closing});
  }

  // The members of a batch stay scheduled forever, so a dump of active work
  // only lists them when their closing entry is done and gone.
  void finish_open_batches() {
    std::set<GroupId> batched;
    for (std::size_t i = 0; i < transfers_.size(); ++i)
      if (transfers_[i].closing != transfers_[i].entry ||
          (i > 0 && transfers_[i - 1].group == transfers_[i].group &&
           dump_.entries.p2p_sequence(transfers_[i - 1].entry) ==
               dump_.entries.p2p_sequence(transfers_[i].entry)))
        batched.insert(transfers_[i].group);
    for (Transfer& transfer : transfers_)
      if (transfer.closing == transfer.entry &&
          batched.contains(transfer.group))
        transfer.done = true;
  }

  // A number that entries of two groups have says nothing.
  void name_statuses() {
    std::map<std::int64_t, GroupId> groups;
    for (std::size_t place = 0; place < states_.size(); ++place)
      for (const std::int64_t local : states_[place].locals) {
        const GroupId group = dump_.groups[place];
        const auto [found, is_new] = groups.try_emplace(local, group);
        if (found->second != group)
          found->second = kNoGroup;
      }
    std::vector<StatusOwner>& owners = matching_.status_owners_[rank_index_];
    for (const GroupStatus& status : dump_.statuses) {
      const auto found = groups.find(status.local_group);
      owners.push_back(found == groups.end()
                           ? StatusOwner{}
                           : StatusOwner{found->second, true});
    }
    for (const State& state : states_)
      if (state.lane != nullptr && !state.locals.empty())
        state.lane->local_group = state.locals.back();
  }

  Matching& matching_;
  const Job& job_;
  const RankDump& dump_;
  const std::size_t rank_index_;
  const bool wrapped_;
  std::vector<Transfer>& transfers_;
  std::vector<State> states_;  // of each of the dump's groups
};

void Matching::read_ranks(const Context& context) {
  // A rank fills its own lanes only, so several can be read at once.
  constexpr std::size_t kAtOnce = 16;
  const std::size_t ranks = job_->ranks.size();
  const InterruptionScope to_the_end(nullptr);
  [[maybe_unused]] const Result<> read =
      WorkerPool(context.threads)
          .map_ordered((ranks + kAtOnce - 1) / kAtOnce,
                       [&](std::size_t block) {
                         const std::size_t end =
                             std::min(ranks, (block + 1) * kAtOnce);
                         for (std::size_t i = block * kAtOnce; i < end; ++i)
                           RankReader(*this, i).read();
                         return true;
                       },
                       [](std::size_t, bool) -> Result<> { return {}; });
  assert(read);
}

std::optional<GroupId> Matching::group_of_status(std::size_t rank_index,
                                                 std::size_t status) const {
  const GroupId group = status_owners_[rank_index][status].group;
  return group == kNoGroup ? std::nullopt : std::optional(group);
}

// A status names its group by a number that each rank counts for itself, mostly
// in the same order. A rank's own entries say which group it is. Where it has
// none of a group, that has the number by which the other members know it,
// unless the rank's entries, or another such group, have it too.
void Matching::find_statuses() {
  struct Claim {
    std::size_t rank_index;
    std::uint32_t status;
    Lane* lane;
  };
  std::vector<Claim> claims;
  std::vector<std::map<std::int64_t, std::uint32_t>> numbers(
      job_->ranks.size());
  for (std::size_t r = 0; r < job_->ranks.size(); ++r)
    for (std::uint32_t i = 0; i < job_->ranks[r].statuses.size(); ++i)
      numbers[r][job_->ranks[r].statuses[i].local_group] = i;
  for (std::uint32_t g = 0; g < lanes_.size(); ++g) {
    std::map<std::int64_t, std::size_t> local_ids;
    for (const Lane& lane : lanes_[g])
      if (lane.local_group)
        ++local_ids[*lane.local_group];
    const auto usual = std::ranges::max_element(
        local_ids, {}, [](const auto& entry) { return entry.second; });
    for (Lane& lane : lanes_[g]) {
      if (lane.dump == nullptr || usual == local_ids.end())
        continue;
      const auto r = static_cast<std::size_t>(lane.dump - job_->ranks.data());
      const auto found =
          numbers[r].find(lane.local_group.value_or(usual->first));
      if (found == numbers[r].end())
        continue;
      const StatusOwner& owner = status_owners_[r][found->second];
      if (lane.local_group && owner.group == GroupId{g})
        lane.status = &lane.dump->statuses[found->second];
      else if (!lane.local_group && !owner.named)
        claims.push_back({r, found->second, &lane});
    }
  }
  // In order of groups; those of one status come from one rank.
  const auto same = [](const Claim& a, const Claim& b) {
    return a.rank_index == b.rank_index && a.status == b.status;
  };
  std::ranges::stable_sort(claims, {}, [](const Claim& claim) {
    return std::pair(claim.rank_index, claim.status);
  });
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if ((i > 0 && same(claims[i - 1], claims[i])) ||
        (i + 1 < claims.size() && same(claims[i], claims[i + 1])))
      continue;
    const Claim& claim = claims[i];
    claim.lane->status = &claim.lane->dump->statuses[claim.status];
  }
  for (std::uint32_t g = 0; g < lanes_.size(); ++g)
    for (const Lane& lane : lanes_[g])
      if (lane.status != nullptr)
        status_owners_[static_cast<std::size_t>(lane.dump - job_->ranks.data())]
                      [static_cast<std::size_t>(lane.status -
                                                lane.dump->statuses.data())]
                          .group = {g};
}

void Matching::set_bounds() {
  for (std::size_t g = 0; g < lanes_.size(); ++g)
    for (Lane& lane : lanes_[g]) {
      if (lane.dump == nullptr)
        continue;
      if (lane.dump->entries.empty() && !lane.dump->statuses.empty())
        lane.only_active = true;
      lane.bounded |= !ring_has_wrapped(*lane.dump);
      if (lane.status == nullptr)
        continue;
      // In a group with transfers the status counts these, too.
      if (!with_transfers_[g] && (lane.only_active || lane.slots.empty())) {
        lane.bounded = true;
        lane.last_enqueued =
            std::max(lane.last_enqueued, lane.status->last_enqueued);
      }
      for (Slot& slot : lane.slots)
        if (slot.weak && slot.sequence <= lane.status->last_completed)
          slot.weak = false;
    }
}

// An all_reduce can't be done before all have joined it. A broadcast can, on
// its root, and so can whatever sends one way only; and a gloo operation that
// failed looks like one that is done.
bool Matching::proves_all_joined(const Lane& lane, const Slot& slot) const {
  if (!slot.done || slot.weak)
    return false;
  const CallId call = lane.dump->entries.call(slot.entry);
  return name_completes_[job_->tables.call(call).name.value] != 0 &&
         operation(call).needs_all();
}

// Operations of a group end in order. One that reads pending before others that
// the rank has certainly finished was never seen to end, but has.
void Matching::fill_holes() {
  for (std::vector<Lane>& lanes : lanes_)
    for (Lane& lane : lanes) {
      const auto hole = std::ranges::find(lane.slots, false, &Slot::done);
      bool finished = false;
      for (auto slot = lane.slots.end(); slot != hole;) {
        --slot;
        slot->done |= finished;
        finished |= proves_all_joined(lane, *slot);
      }
    }
}

// A rank that has not come to what others prove that all have joined dumped
// before they did; so did one that waits in an earlier operation of that group,
// for these end in order. What such a dump lacks in other groups proves nothing
// either.
void Matching::find_stale() {
  finished_.assign(lanes_.size(), std::numeric_limits<std::int64_t>::min());
  stale_.assign(job_->ranks.size(), 0);
  for (std::size_t g = 0; g < lanes_.size(); ++g) {
    std::int64_t& finished = finished_[g];
    for (const Lane& lane : lanes_[g])
      for (auto slot = lane.slots.rbegin(); slot != lane.slots.rend(); ++slot) {
        if (slot->sequence <= finished)
          break;
        if (proves_all_joined(lane, *slot)) {
          finished = slot->sequence;
          break;
        }
      }
    for (const Lane& lane : lanes_[g]) {
      if (lane.dump == nullptr || !lane.dump->complete || !lane.bounded)
        continue;
      const Slot* const pending = lane.first_pending();
      if (lane.last_enqueued < finished ||
          (pending != nullptr && pending->sequence < finished))
        stale_[static_cast<std::size_t>(lane.dump - job_->ranks.data())] = 1;
    }
  }
  for (std::size_t g = 0; g < lanes_.size(); ++g)
    for (Lane& lane : lanes_[g])
      lane.stale =
          lane.dump != nullptr &&
          (stale_[static_cast<std::size_t>(lane.dump - job_->ranks.data())] !=
               0 ||
           lane.last_enqueued < finished_[g]);
}

std::optional<Disagreement> Matching::compare(GroupId group,
                                              const Row& row) const {
  const std::vector<Lane>& lanes = lanes_[group.value];
  const auto call_of = [&](const Row::Member& member) {
    return lanes[member.lane].dump->entries.call(member.slot->entry);
  };
  bool batches = false;
  bool alike = true;
  const std::uint32_t meaning = calls_.meaning(call_of(row.members[0]));
  for (const Row::Member& member : row.members) {
    batches |= member.slot->closing != member.slot->entry;
    alike &= calls_.meaning(call_of(member)) == meaning;
  }
  if (!batches) {
    if (alike && !calls_.is_suspicious(call_of(row.members[0])))
      return std::nullopt;
    std::vector<Passed> passed;
    for (const Row::Member& member : row.members)
      if (!member.slot->partial)
        passed.push_back({lanes[member.lane].rank, call_of(member)});
    return calls_.compare(passed, lanes.size());
  }

  // The members of the batches, position by position.
  struct Batch {
    const Row::Member* member;
    std::span<const std::uint32_t> entries;
  };
  std::vector<Batch> rest;
  for (const Row::Member& member : row.members)
    if (!member.slot->partial)
      rest.push_back({&member, lanes[member.lane].members(*member.slot)});
  std::size_t most = 0;
  for (const Batch& batch : rest)
    most = std::max(most, batch.entries.size());
  std::vector<Passed> passed;
  for (std::uint32_t position = 0; position < most; ++position) {
    passed.clear();
    std::vector<Rank> ended;
    CallId last = {};
    for (const Batch& batch : rest) {
      const Lane& lane = lanes[batch.member->lane];
      if (position < batch.entries.size()) {
        passed.push_back(
            {lane.rank, lane.dump->entries.call(batch.entries[position])});
      } else if (batch.member->slot->closing != batch.entries.back()) {
        ended.push_back(lane.rank);  // closed, so nothing more will come
        last = lane.dump->entries.call(batch.entries.back());
      }
    }
    bool same = true;
    for (const Passed& one : passed)
      same &= calls_.meaning(one.call) == calls_.meaning(passed[0].call);
    if (!same || calls_.is_suspicious(passed[0].call))
      if (std::optional<Disagreement> found =
              calls_.compare(passed, lanes.size())) {
        found->position = position;
        return found;
      }
    if (ended.empty())
      continue;
    Disagreement found;
    found.difference = Difference::kBatch;
    found.position = position;
    const bool shorter =
        ended.size() < passed.size() ||
        (ended.size() == passed.size() && ended[0] > passed[0].rank);
    found.decided = ended.size() != passed.size();
    for (const Passed& one : passed)
      (shorter ? found.suspects : found.differing).push_back(one.rank);
    (shorter ? found.differing : found.suspects) = ended;
    if (found.decided) {
      found.suspects = found.differing;
    } else {
      found.suspects.insert(found.suspects.end(), found.differing.begin(),
                            found.differing.end());
      std::ranges::sort(found.suspects);
    }
    found.majority_call = shorter ? passed[0].call : last;
    found.minority_call = shorter ? last : passed[0].call;
    found.text = fmt::format("batched {} operations than the others in",
                             shorter ? "fewer" : "more");
    return found;
  }
  return std::nullopt;
}

}  // namespace postflight
