#include "flight/classic/judge.h"

#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "flight/classic/text.h"

namespace postflight {
namespace {

// Dumps of one job are taken seconds apart. Only a rank that was seen alive
// this long after its peers were done had the time to be done too.
constexpr std::int64_t kSameMoment = 1'000'000'000;  // nanoseconds

const GroupStatus* status_of(const RankDump& dump, std::int64_t local_group) {
  const auto found =
      std::ranges::find(dump.statuses, local_group, &GroupStatus::local_group);
  return found == dump.statuses.end() ? nullptr : &*found;
}

// Before version 2.4 the sizes of all_to_all are not recorded.
bool has_all_to_all_sizes(std::string_view version) {
  const char* const end = version.data() + version.size();
  int major = 0;
  int minor = 0;
  const auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || dot == end ||
      std::from_chars(dot + 1, end, minor).ec != std::errc())
    return true;
  return major > 2 || minor > 3;
}

}  // namespace

std::vector<ClassicJoined> ClassicJudge::joined(GroupId group,
                                                std::int64_t sequence) const {
  std::vector<ClassicJoined> found;
  std::vector<ClassicTrace>& traces = index_.traces(group);
  found.reserve(traces.size());
  for (std::uint32_t i = 0; i < traces.size(); ++i)
    if (const ClassicStep* const step = traces[i].find(sequence))
      found.push_back(
          {.shown = {traces[i].rank, traces[i].entries[step->first]},
           .trace = i,
           .step = static_cast<std::uint32_t>(step - traces[i].steps.data()),
           .pending = step->pending != 0});
  return found;
}

// A rank counts its operations of a group one by one: below its last number
// none is missing, it was just not kept.
bool ClassicJudge::may_have_joined(std::uint32_t rank,
                                   const ClassicTrace* trace,
                                   std::int64_t sequence,
                                   std::int64_t local_group) const {
  const RankDump& dump = job_.ranks[rank];
  const bool has_steps = trace != nullptr && !trace->steps.empty();
  if (has_steps && sequence < trace->last_sequence())
    return true;
  if (!index_.is_cut(rank) && !dump.entries.empty())
    return false;
  // The dump may list active operations only. The status mixes up collectives
  // and messages, so it tells nothing where there are both.
  const GroupStatus* const status = status_of(dump, local_group);
  if (status != nullptr && (trace == nullptr || !trace->point_to_point))
    return status->last_enqueued >= sequence;
  return !has_steps && index_.is_cut(rank);
}

// Whether somebody has certainly finished, so that all must have joined. An
// operation that was never launched reads completed too; the status of its
// group then still has an older number.
bool ClassicJudge::others_are_done(
    GroupId group, std::int64_t sequence,
    const std::vector<ClassicJoined>& joined) const {
  return std::ranges::any_of(joined, [&](const ClassicJoined& one) {
    const ClassicTrace& trace = index_.traces(group)[one.trace];
    const ClassicStep& step = trace.steps[one.step];
    const Entry entry =
        entry_at(job_, {one.shown.rank, trace.entries_of(step).back()});
    if (entry.state != State::kCompleted || !entry.retired ||
        trace.point_to_point || calls_.facts(entry.call).rooted)
      return false;
    const GroupStatus* const status =
        status_of(job_.ranks[one.shown.rank], job_.call(entry).local_group);
    return status != nullptr && status->last_completed >= sequence;
  });
}

ClassicJudge::Absent ClassicJudge::absent(
    GroupId group, std::int64_t sequence,
    const std::vector<ClassicJoined>& joined) const {
  Absent absent;
  absent.without_dump = index_.without_dump(group);
  const std::vector<ClassicTrace>& traces = index_.traces(group);
  const std::vector<std::uint32_t>& silent = index_.silent(group);
  if (joined.size() == traces.size() && silent.empty())
    return absent;
  const std::int64_t local_group =
      job_.tables.call(call_of(joined.front().shown)).local_group;
  std::optional<bool> done;
  const auto add = [&](std::uint32_t rank, const ClassicTrace* trace) {
    const RankDump& dump = job_.ranks[rank];
    if (!job_.group(group).has(dump.rank))
      return;
    if (may_have_joined(rank, trace, sequence, local_group)) {
      absent.unknown = true;
    } else if (!dump.complete) {
      absent.without_dump.push_back(dump.rank);
    } else {
      if (!done)
        done = others_are_done(group, sequence, joined);
      if (*done)
        absent.unknown = true;
      else
        absent.missing.push_back(dump.rank);
    }
  };
  auto next = joined.begin();
  for (const ClassicTrace& trace : traces)
    if (next != joined.end() && next->shown.rank == trace.rank)
      ++next;
    else
      add(trace.rank, &trace);
  for (const std::uint32_t rank : silent)
    add(rank, nullptr);
  std::ranges::sort(absent.missing);
  std::ranges::sort(absent.without_dump);
  return absent;
}

// Whoever differs from the majority; among equals from the first rank.
std::vector<ClassicError> ClassicJudge::compare_shown(
    std::size_t members, ClassicJudgement& judgement) const {
  const std::vector<ClassicJoined>& joined = judgement.joined;
  const CallId first = call_of(joined.front().shown);
  judgement.shown = joined.front().shown;
  std::vector<ClassicError> errors;
  const bool alike = std::ranges::all_of(joined, [&](const ClassicJoined& one) {
    const CallId call = call_of(one.shown);
    return call == first || calls_.facts(call).key == calls_.facts(first).key;
  });
  if (!alike) {
    const auto as_tuple = [](const ClassicCallKey& key) {
      return std::tuple(key.type, key.inputs, key.outputs, key.input_dtypes,
                        key.output_dtypes);
    };
    using Tuple = decltype(as_tuple(ClassicCallKey()));
    std::map<Tuple, std::size_t> votes;
    std::size_t most = 0;
    for (const ClassicJoined& one : joined)
      most = std::max(most,
                      ++votes[as_tuple(calls_.facts(call_of(one.shown)).key)]);
    const auto chosen =
        std::ranges::find_if(joined, [&](const ClassicJoined& one) {
          return votes[as_tuple(calls_.facts(call_of(one.shown)).key)] == most;
        });
    judgement.shown = chosen->shown;
  }
  const CallId expected = call_of(judgement.shown);
  const std::optional<ClassicCallDifference> contradiction =
      calls_.contradiction(expected, members);
  if (alike && !contradiction)
    return errors;
  for (const ClassicJoined& one : joined) {
    const CallId found = call_of(one.shown);
    if (!(calls_.facts(found).key == calls_.facts(expected).key)) {
      ClassicCallDifference difference = calls_.difference(expected, found);
      errors.push_back(
          {one.shown, difference.mismatch, std::move(difference.text)});
    } else if (contradiction) {
      errors.push_back(
          {one.shown, contradiction->mismatch, contradiction->text});
    }
  }
  return errors;
}

// Whether the rank's oldest operation is one that others finished long ago.
bool ClassicJudge::is_stalled(const ClassicJoined& joined,
                              std::int64_t finished) const {
  if (index_.oldest_pending(joined.shown.rank) != joined.shown.entry)
    return false;
  std::int64_t newest = 0;
  const Entries& entries = job_.ranks[joined.shown.rank].entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry entry = entries[i];
    newest = std::max({newest, entry.created, entry.started, entry.completed});
  }
  return newest - kSameMoment >= finished;
}

// A rank whose operation has not started while that of others has, or that
// has not finished what others have, has a stalled device.
std::vector<ClassicError> ClassicJudge::compare_states(
    ClassicJudgement& judgement) const {
  std::vector<ClassicError> errors;
  const Entry first = entry_at(job_, judgement.joined.front().shown);
  const ClassicCallFacts& facts = calls_.facts(first.call);
  if (facts.rooted || facts.gloo || facts.kind == OperationKind::kCoalesced)
    return errors;
  const ClassicJoined* best = nullptr;
  State furthest = State::kScheduled;
  bool differ = false;
  for (const ClassicJoined& one : judgement.joined) {
    const State state = entry_at(job_, one.shown).state;
    if (state == State::kUnknown)
      return errors;
    differ = differ || state != first.state;
    if (best == nullptr || state > furthest) {
      best = &one;
      furthest = state;
    }
  }
  if (!differ)
    return errors;
  std::int64_t finished = 0;
  if (furthest == State::kCompleted) {
    for (const ClassicJoined& one : judgement.joined) {
      const Entry entry = entry_at(job_, one.shown);
      if (others_are_done(judgement.group, entry.sequence, {one}) &&
          (finished == 0 || entry.completed < finished)) {
        finished = entry.completed;
        best = &one;
      }
    }
    if (finished == 0)
      return errors;
  }
  for (const ClassicJoined& one : judgement.joined) {
    const State state = entry_at(job_, one.shown).state;
    const bool late =
        furthest == State::kStarted
            ? state == State::kScheduled && one.pending &&
                  index_.oldest_pending(one.shown.rank) == one.shown.entry
            : one.pending && is_stalled(one, finished);
    if (late)
      errors.push_back(
          {one.shown, ClassicMismatch::kState,
           fmt::format("Expected state: '{}' does not match found state: '{}'",
                       state_name(furthest), state_name(state))});
  }
  if (!errors.empty())
    judgement.shown = best->shown;
  return errors;
}

std::vector<ClassicError> ClassicJudge::compare(
    GroupId group, ClassicJudgement& judgement) const {
  const std::vector<ClassicTrace>& traces = index_.traces(group);
  std::uint32_t count = 1;
  for (const ClassicJoined& one : judgement.joined)
    count =
        std::max<std::uint32_t>(count, traces[one.trace].steps[one.step].count);
  judgement.batch = count > 1;
  const std::size_t members = job_.group(group).members.size();
  if (!judgement.batch) {
    std::vector<ClassicError> errors = compare_shown(members, judgement);
    return errors.empty() ? compare_states(judgement) : std::move(errors);
  }
  // One operation of the batch after the other; the states of those inside
  // mean nothing.
  for (std::uint32_t i = 0; i < count; ++i) {
    for (ClassicJoined& one : judgement.joined) {
      const ClassicTrace& trace = traces[one.trace];
      const ClassicStep& step = trace.steps[one.step];
      one.shown.entry =
          trace.entries_of(step)[std::min<std::uint32_t>(i, step.count - 1)];
    }
    std::vector<ClassicError> errors = compare_shown(members, judgement);
    if (!errors.empty())
      return errors;
    // Of a batch that was not joined, the first operation is spoken of.
    if (judgement.problem)
      break;
  }
  return {};
}

ClassicJudgement ClassicJudge::collective(GroupId group,
                                          std::int64_t sequence) const {
  ClassicJudgement judgement;
  judgement.group = group;
  judgement.joined = joined(group, sequence);
  Absent absent = this->absent(group, sequence, judgement.joined);
  const bool incomplete =
      !absent.missing.empty() || !absent.without_dump.empty();
  if (incomplete)
    judgement.problem = ClassicProblem{
        .kind = absent.without_dump.empty() ? ClassicProblemKind::kMissingRanks
                                            : ClassicProblemKind::kMissingDumps,
        .missing = std::move(absent.missing),
        .without_dump = std::move(absent.without_dump)};
  std::vector<ClassicError> errors = compare(group, judgement);
  if (!errors.empty()) {
    if (!judgement.problem)
      judgement.problem.emplace();
    if (judgement.problem->kind != ClassicProblemKind::kMissingRanks)
      judgement.problem->kind = ClassicProblemKind::kErrors;
    judgement.problem->errors = std::move(errors);
    return judgement;
  }
  const CallId call = call_of(judgement.shown);
  if (incomplete || absent.unknown ||
      calls_.facts(call).kind != OperationKind::kAllToAll ||
      !has_all_to_all_sizes(
          job_.text(job_.ranks[judgement.shown.rank].version)))
    return judgement;
  ClassicProblem numel = {.kind = ClassicProblemKind::kNumel};
  for (const ClassicJoined& one : judgement.joined) {
    const auto add = [](std::int64_t& sum, std::int64_t more) {
      if (__builtin_add_overflow(sum, more, &sum))
        sum = std::numeric_limits<std::int64_t>::max();
    };
    add(numel.input_numel, calls_.input_numel(call_of(one.shown)));
    add(numel.output_numel, calls_.output_numel(call_of(one.shown)));
  }
  if (numel.input_numel != numel.output_numel) {
    numel.errors.push_back({judgement.shown, ClassicMismatch::kSize, ""});
    judgement.problem = std::move(numel);
  }
  return judgement;
}

ClassicJudgement ClassicJudge::message(std::uint32_t number) const {
  const ClassicMessage& message = index_.message(number);
  const Rank own = job_.ranks[message.where.rank].rank;
  ClassicJudgement judgement;
  judgement.group = message.group;
  judgement.shown = message.where;
  judgement.point_to_point = true;
  judgement.peers[0] = own;
  judgement.peers[1] = message.peer.value < 0 ? own : message.peer;
  judgement.messages = {number};
  judgement.joined = {{.shown = message.where, .pending = message.pending}};
  judgement.evident = message.pending;
  if (message.partner != ClassicMessage::kNone) {
    const ClassicMessage& partner = index_.message(message.partner);
    judgement.messages.push_back(message.partner);
    judgement.joined.push_back(
        {.shown = partner.where, .pending = partner.pending});
    std::ranges::sort(judgement.joined, {},
                      [](const ClassicJoined& one) { return one.shown.rank; });
    const ClassicMessage& send = message.send ? message : partner;
    const ClassicMessage& receive = message.send ? partner : message;
    if (calls_.same_message(call_of(send.where), call_of(receive.where)))
      return judgement;
    const Call& expected = job_.tables.call(call_of(message.where));
    const Call& found = job_.tables.call(call_of(partner.where));
    judgement.problem.emplace();
    judgement.problem->errors.push_back(
        {partner.where, ClassicMismatch::kSize,
         message.send
             ? fmt::format("Expected input sizes: '{}' does not match found "
                           "output sizes: '{}'",
                           sizes_text(job_.tables, expected.inputs),
                           sizes_text(job_.tables, found.outputs))
             : fmt::format("Expected output sizes: '{}' does not match found "
                           "input sizes: '{}'",
                           sizes_text(job_.tables, expected.outputs),
                           sizes_text(job_.tables, found.inputs))});
    return judgement;
  }
  if (!message.judged)
    return judgement;
  const RankDump* const peer = job_.find(message.peer);
  if (peer != nullptr && peer->complete)
    judgement.problem = ClassicProblem{
        .kind = ClassicProblemKind::kMissingRanks, .missing = {message.peer}};
  else if (message.pending)
    judgement.problem =
        ClassicProblem{.kind = ClassicProblemKind::kMissingDumps,
                       .without_dump = {message.peer}};
  return judgement;
}

ClassicJudgement ClassicJudge::oldest_pending(std::uint32_t rank) const {
  const std::uint32_t entry = index_.oldest_pending(rank);
  const ClassicPlace place = index_.place(rank, entry);
  if (place.is_message())
    return message(place.number);
  const GroupId group = job_.tables.call(call_of({rank, entry})).group;
  return collective(
      group, index_.traces(group)[place.trace].steps[place.number].sequence);
}

void ClassicJudge::take(const ClassicJudgement& judgement) const {
  for (const std::uint32_t message : judgement.messages)
    index_.message(message).taken = true;
  if (judgement.point_to_point)
    return;
  std::vector<ClassicTrace>& traces = index_.traces(judgement.group);
  for (const ClassicJoined& one : judgement.joined)
    traces[one.trace].steps[one.step].taken = 1;
}

}  // namespace postflight
