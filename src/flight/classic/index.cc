// Two things of the recorder make the steps of a rank more than its entries.
// A batch of collectives has an entry for each and one named "coalesced" that
// closes it, all under one sequence number. A batch of sends and receives has
// its own count, and its closing entry is no point-to-point operation: it
// repeats the number of the collective before it and must not be taken for it.
#include "flight/classic/index.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "flight/classic/alignment.h"

namespace postflight {
namespace {

constexpr std::uint32_t kMessages = ClassicPlace::kNone - 1;

bool is_pending(const Entry& entry) {
  return entry.state != State::kCompleted && !entry.retired;
}

}  // namespace

std::int64_t ClassicTrace::last_sequence() const {
  return steps.empty() ? std::numeric_limits<std::int64_t>::min()
                       : steps.back().sequence;
}

// Collectives are asked for in about the order in which they came, so the
// answer is nearly always at the cursor.
ClassicStep* ClassicTrace::find(std::int64_t sequence) {
  while (cursor < steps.size() && steps[cursor].taken)
    ++cursor;
  if (cursor < steps.size() && steps[cursor].sequence == sequence)
    return &steps[cursor];
  if (!queues.empty()) {
    const auto found = queues.find(sequence);
    if (found == queues.end())
      return nullptr;
    Queue& queue = found->second;
    while (queue.next < queue.steps.size() &&
           steps[queue.steps[queue.next]].taken)
      ++queue.next;
    return queue.next == queue.steps.size() ? nullptr
                                            : &steps[queue.steps[queue.next]];
  }
  const auto rest = std::span(steps).subspan(cursor);
  auto found =
      std::ranges::lower_bound(rest, sequence, {}, &ClassicStep::sequence);
  while (found != rest.end() && found->sequence == sequence && found->taken)
    ++found;
  return found == rest.end() || found->sequence != sequence ? nullptr : &*found;
}

void ClassicTrace::finish() {
  steps.shrink_to_fit();
  entries.shrink_to_fit();
  if (std::ranges::is_sorted(steps, {}, &ClassicStep::sequence))
    return;
  for (std::uint32_t i = 0; i < steps.size(); ++i)
    queues[steps[i].sequence].steps.push_back(i);
}

// Reads the entries of one rank, group by group as they come.
class ClassicIndex::RankReader {
 public:
  RankReader(ClassicIndex& index, std::uint32_t rank)
      : index_(index), dump_(index.job_.ranks[rank]), rank_(rank) {}

  void read(std::uint32_t number) {
    const Entry entry = dump_.entries[number];
    const Call& call = index_.job_.tables.call(entry.call);
    const ClassicCallFacts& facts = index_.calls_.facts(entry.call);
    GroupState& state = state_of(call.group);
    if (facts.point_to_point)
      add_message(number, entry, call, facts, state);
    else if (closes_messages(entry, facts, state))
      close_messages(entry, state);
    else
      add_collective(number, entry, facts, state);
  }

  void finish() {
    for (auto& [group, state] : states_)
      if (index_.cut_[rank_]) {
        drop_partial_batch(state.trace);
        forget_finished_messages(state);
      }
    for (auto& [group, state] : states_) {
      std::vector<ClassicTrace>& traces = index_.traces_[group.value];
      const auto number = static_cast<std::uint32_t>(traces.size());
      for (std::uint32_t i = 0; i < state.trace.steps.size(); ++i) {
        const ClassicStep& step = state.trace.steps[i];
        index_.places_[rank_][state.trace.entries[step.first]] = {number, i};
      }
      state.trace.finish();
      traces.push_back(std::move(state.trace));
    }
  }

 private:
  struct GroupState {
    ClassicTrace trace;
    // The messages of the last batch, while nothing else came between.
    std::vector<std::uint32_t> open_messages;
    std::int64_t open_sequence = 0;
    bool open_step = false;  // the last entry may have others behind it
    std::vector<std::uint32_t> unclosed;  // messages, of all batches
  };

  GroupState& state_of(GroupId group) {
    if (last_ == nullptr || last_group_ != group) {
      last_ = &states_[group];
      last_->trace.rank = rank_;
      last_group_ = group;
    }
    return *last_;
  }

  void add_message(std::uint32_t number, const Entry& entry, const Call& call,
                   const ClassicCallFacts& facts, GroupState& state) {
    const Group& group = index_.job_.group(call.group);
    const bool send = facts.kind == OperationKind::kSend;
    const std::int32_t own = send ? facts.source : facts.destination;
    const std::int32_t other = send ? facts.destination : facts.source;
    const auto members = static_cast<std::int32_t>(group.members.size());
    const bool known = own == group.place(dump_.rank) && other >= 0 &&
                       other < members && own >= 0;
    if (state.open_messages.empty() ||
        state.open_sequence != entry.p2p_sequence)
      state.open_messages.clear();
    state.open_sequence = entry.p2p_sequence;
    state.open_step = false;
    state.trace.point_to_point = true;
    const auto message = static_cast<std::uint32_t>(index_.messages_.size());
    state.open_messages.push_back(message);
    state.unclosed.push_back(message);
    index_.places_[rank_][number] = {kMessages, message};
    index_.messages_.push_back(
        {.where = {rank_, number},
         .group = call.group,
         .peer =
             known ? group.members[static_cast<std::size_t>(other)] : Rank{-1},
         .send = send,
         .pending = is_pending(entry),
         .judged = known});
  }

  bool closes_messages(const Entry& entry, const ClassicCallFacts& facts,
                       const GroupState& state) const {
    if (facts.kind != OperationKind::kCoalesced)
      return false;
    if (!state.open_messages.empty())
      return state.open_sequence == entry.p2p_sequence;
    // Its batch was overwritten, if the number is one that was used before.
    return state.trace.steps.empty()
               ? index_.cut_[rank_] && entry.p2p_sequence > 0
               : !state.open_step && state.trace.point_to_point &&
                     state.trace.last_sequence() == entry.sequence;
  }

  void close_messages(const Entry& entry, GroupState& state) {
    for (const std::uint32_t message : state.open_messages)
      index_.messages_[message].pending = is_pending(entry);
    // They are the last ones.
    state.unclosed.resize(state.unclosed.size() - state.open_messages.size());
    state.open_messages.clear();
    state.open_step = false;
  }

  void add_collective(std::uint32_t number, const Entry& entry,
                      const ClassicCallFacts& facts, GroupState& state) {
    ClassicTrace& trace = state.trace;
    state.open_messages.clear();
    const bool continues = state.open_step && !trace.steps.empty() &&
                           trace.steps.back().sequence == entry.sequence;
    if (continues)
      ++trace.steps.back().count;
    else
      trace.steps.push_back(
          {.sequence = entry.sequence,
           .first = static_cast<std::uint32_t>(trace.entries.size())});
    trace.entries.push_back(number);
    trace.steps.back().pending = is_pending(entry);
    // What closes a batch ends its step, but stands alone if it is the first.
    state.open_step = !(continues && facts.kind == OperationKind::kCoalesced);
  }

  // The messages of a batch read scheduled for ever. Where only active
  // operations are listed they are there without what closed them; in a group
  // without collectives the status then tells which of them are done.
  void forget_finished_messages(const GroupState& state) {
    if (!state.trace.steps.empty())
      return;
    for (const std::uint32_t number : state.unclosed) {
      ClassicMessage& message = index_.messages_[number];
      const Entry entry = dump_.entries[message.where.entry];
      const auto status =
          std::ranges::find(dump_.statuses, index_.job_.call(entry).local_group,
                            &GroupStatus::local_group);
      if (status == dump_.statuses.end() ||
          entry.p2p_sequence > status->last_completed)
        continue;
      message.pending = false;
      message.judged = false;
    }
  }

  // A batch at the cut may have lost its beginning.
  void drop_partial_batch(ClassicTrace& trace) {
    if (trace.steps.empty())
      return;
    const ClassicStep& step = trace.steps.front();
    const CallId call = dump_.entries.call(trace.entries[step.first]);
    if (step.count > 1 ||
        index_.calls_.facts(call).kind == OperationKind::kCoalesced)
      trace.steps.erase(trace.steps.begin());
  }

  ClassicIndex& index_;
  const RankDump& dump_;
  const std::uint32_t rank_;
  std::map<GroupId, GroupState> states_;
  GroupState* last_ = nullptr;
  GroupId last_group_;
};

ClassicIndex::ClassicIndex(const Job& job, const ClassicCalls& calls)
    : job_(job), calls_(calls), traces_(job.groups.size()) {
  const std::vector<std::uint32_t> starts = aligned_starts(job);
  places_.resize(job.ranks.size());
  for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    const Entries& entries = job.ranks[rank].entries;
    cut_.push_back(starts[rank] > 0 ||
                   (!entries.empty() && entries[0].record_id > 0));
    read_rank(rank, starts[rank]);
  }
  pair_messages();
  list_members();
  find_oldest_pending();
}

void ClassicIndex::read_rank(std::uint32_t rank, std::uint32_t start) {
  const auto count =
      static_cast<std::uint32_t>(job_.ranks[rank].entries.size());
  places_[rank].resize(count);
  RankReader reader(*this, rank);
  for (std::uint32_t i = start; i < count; ++i)
    reader.read(i);
  reader.finish();
}

// Messages between two ranks of a group arrive in the order in which they were
// sent; their numbers don't compare. Where entries of one side were
// overwritten, only those still waiting can be paired.
void ClassicIndex::pair_messages() {
  using Channel = std::tuple<GroupId, Rank, Rank>;  // group, from, to
  struct Sides {
    std::vector<std::uint32_t> sends;
    std::vector<std::uint32_t> receives;
  };
  std::map<Channel, Sides> channels;
  std::map<std::pair<GroupId, Rank>, bool> takes_from_any;
  for (std::uint32_t i = 0; i < messages_.size(); ++i) {
    ClassicMessage& message = messages_[i];
    const Rank own = job_.ranks[message.where.rank].rank;
    if (!message.judged) {
      if (!message.send)
        takes_from_any[{message.group, own}] = true;
      continue;
    }
    const RankDump* const other = job_.find(message.peer);
    const bool cut =
        cut_[message.where.rank] ||
        (other != nullptr &&
         cut_[static_cast<std::size_t>(other - job_.ranks.data())]);
    if (cut && !message.pending) {
      message.judged = false;
      continue;
    }
    Sides& sides = message.send ? channels[{message.group, own, message.peer}]
                                : channels[{message.group, message.peer, own}];
    (message.send ? sides.sends : sides.receives).push_back(i);
  }
  for (auto& [channel, sides] : channels) {
    const bool any = takes_from_any.contains(
        {std::get<GroupId>(channel), std::get<2>(channel)});
    const std::size_t pairs =
        any ? 0 : std::min(sides.sends.size(), sides.receives.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      messages_[sides.sends[i]].partner = sides.receives[i];
      messages_[sides.receives[i]].partner = sides.sends[i];
    }
    for (const std::uint32_t message :
         any ? sides.sends : std::vector<std::uint32_t>())
      messages_[message].judged = false;
  }
}

void ClassicIndex::list_members() {
  silent_.resize(job_.groups.size());
  without_dump_.resize(job_.groups.size());
  for (std::uint32_t group = 0; group < job_.groups.size(); ++group) {
    const std::vector<ClassicTrace>& traces = traces_[group];
    for (const Rank member : job_.groups[group].members) {
      const RankDump* const dump = job_.find(member);
      if (dump == nullptr) {
        without_dump_[group].push_back(member);
        continue;
      }
      const auto rank = static_cast<std::uint32_t>(dump - job_.ranks.data());
      const auto trace =
          std::ranges::lower_bound(traces, rank, {}, &ClassicTrace::rank);
      if (trace == traces.end() || trace->rank != rank)
        silent_[group].push_back(rank);
    }
  }
}

void ClassicIndex::find_oldest_pending() {
  for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
    std::uint32_t oldest = ClassicPlace::kNone;
    const Entries& entries = job_.ranks[rank].entries;
    for (std::uint32_t i = 0;
         i < entries.size() && oldest == ClassicPlace::kNone; ++i) {
      const ClassicPlace place = places_[rank][i];
      if (place.is_message() && messages_[place.number].pending)
        oldest = i;
      else if (place.is_step()) {
        const GroupId group = job_.tables.call(entries.call(i)).group;
        if (traces_[group.value][place.trace].steps[place.number].pending)
          oldest = i;
      }
    }
    oldest_pending_.push_back(oldest);
    waits_unrecorded_.push_back(oldest == ClassicPlace::kNone &&
                                has_unrecorded_wait(job_.ranks[rank]));
  }
}

bool ClassicIndex::has_unrecorded_wait(const RankDump& dump) const {
  return !dump.entries.empty() && calls_.facts(dump.entries.call(0)).gloo &&
         std::ranges::any_of(dump.statuses, [](const GroupStatus& status) {
           return status.last_enqueued > status.last_completed;
         });
}

}  // namespace postflight
