#include "flight/classic/judge.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "flight/classic/text.h"

namespace postflight {
namespace {

// Dumps of one job are taken seconds apart. Only a rank that was seen alive
// this long after its peers were done had the time to be done too.
constexpr std::int64_t kSameMoment = 1'000'000'000;  // nanoseconds

// A difference between two calls, in torchfrtrace's words.
struct ClassicDifference {
  ClassicMismatch mismatch = ClassicMismatch::kType;
  std::string text;
};

ClassicDifference difference_between(const Job& job, const Operation& expected,
                                     const Operation& found,
                                     const Call& expected_call,
                                     const Call& found_call,
                                     Difference difference) {
  const Tables& tables = job.tables;
  if (expected.name != found.name)
    return {ClassicMismatch::kType,
            fmt::format("Expected collective type: '{}' does not match found "
                        "collective type: '{}'",
                        expected.name, found.name)};
  if (difference == Difference::kDtypes)
    return {ClassicMismatch::kDtype,
            fmt::format("Expected dtypes: '{}' does not match found dtype: "
                        "'{}/{}/{}'",
                        dtype_set_text(tables, expected_call.input_dtypes),
                        dtype_set_text(tables, expected_call.output_dtypes),
                        dtype_set_text(tables, found_call.input_dtypes),
                        dtype_set_text(tables, found_call.output_dtypes))};
  const bool inputs = expected_call.inputs != found_call.inputs;
  const std::string_view side = inputs ? "input" : "output";
  return {
      ClassicMismatch::kSize,
      fmt::format(
          "Expected {0} sizes: '{1}' does not match found {0} sizes: '{2}'",
          side,
          sizes_text(tables,
                     inputs ? expected_call.inputs : expected_call.outputs),
          sizes_text(tables, inputs ? found_call.inputs : found_call.outputs))};
}

// A call whose own sizes contradict each other on `members` ranks.
std::string contradiction_text(const Calls& calls, CallId id,
                               std::size_t members) {
  const bool gathers = calls.operation(id).kind == OperationKind::kAllGather;
  return gathers ? fmt::format(
                       "Found input numel '{} * pg size {}' does not "
                       "match output numel '{}'",
                       calls.input_numel(id), members, calls.output_numel(id))
                 : fmt::format(
                       "Found input numel '{}' does not match output "
                       "numel '{} * pg size {}'",
                       calls.input_numel(id), calls.output_numel(id), members);
}

}  // namespace

ClassicJudge::ClassicJudge(const Matching& matching,
                           const CollectiveTable& table)
    : matching_(matching), table_(table), job_(matching.job()) {
  for (const RankDump& dump : job_.ranks)
    rows_.emplace_back(dump.entries.size(), kNone);
  for (std::uint32_t row = 0; row < table.collectives.size(); ++row) {
    const Collective& collective = table.collectives[row];
    for (std::uint64_t i = 0; i < collective.match_count; ++i) {
      const Match& match = table.matches[collective.first_match + i];
      rows_[match.rank][match.entry] = row;
    }
  }
  for (std::uint32_t g = 0; g < job_.groups.size(); ++g)
    has_incomplete_.push_back(std::ranges::any_of(matching.lanes({g}),
                                                  [](const Lane& lane) {
                                                    return lane.dump !=
                                                               nullptr &&
                                                           !lane.dump->complete;
                                                  })
                                  ? 1
                                  : 0);
  find_oldest_pending();
}

void ClassicJudge::find_oldest_pending() {
  oldest_pending_.assign(job_.ranks.size(), kNone);
  for (std::uint32_t g = 0; g < job_.groups.size(); ++g)
    for (const Lane& lane : matching_.lanes({g}))
      if (const Slot* const slot = lane.first_pending()) {
        std::uint32_t& oldest = oldest_pending_[static_cast<std::size_t>(
            lane.dump - job_.ranks.data())];
        oldest = std::min(oldest, slot->entry);
      }
  for (std::uint32_t r = 0; r < job_.ranks.size(); ++r) {
    const auto transfers = matching_.transfers(r);
    const auto found = std::ranges::find(transfers, false, &Transfer::done);
    if (found != transfers.end())
      oldest_pending_[r] = std::min(oldest_pending_[r], found->entry);
  }
}

ClassicJudgement ClassicJudge::judge(std::uint32_t row,
                                     std::uint32_t rank) const {
  const Collective& collective = table_.collectives[row];
  return collective.message ? message(collective, rank)
                            : this->collective(collective);
}

std::vector<ClassicJudge::Party> ClassicJudge::parties(
    const Collective& row) const {
  std::vector<Party> found;
  found.reserve(row.joined);
  const Party all =
      Party(table_.matches).subspan(row.first_match, row.match_count);
  for (std::size_t at = 0; at < all.size();) {
    std::size_t end = at + 1;
    while (end < all.size() && all[end].rank == all[at].rank)
      ++end;
    found.push_back(all.subspan(at, end - at));
    at = end;
  }
  return found;
}

ClassicJudge::Absent ClassicJudge::absent(
    const Collective& row, std::span<const Party> parties) const {
  Absent absent;
  if (row.earlier || (row.absent == 0 && row.without_dump == 0 &&
                      has_incomplete_[row.group.value] == 0))
    return absent;
  auto next = parties.begin();
  for (const Lane& lane : matching_.lanes(row.group)) {
    if (next != parties.end() &&
        job_.ranks[next->front().rank].rank == lane.rank) {
      ++next;
      continue;
    }
    const Presence found = presence(lane, row.sequence);
    if (found == Presence::kAbsent)
      absent.missing.push_back(lane.rank);
    else if (found == Presence::kNoDump ||
             (found == Presence::kUnknown && !lane.dump->complete))
      absent.without_dump.push_back(lane.rank);
  }
  return absent;
}

std::vector<ClassicError> ClassicJudge::differences(
    const Collective& row, std::span<const Party> parties,
    ClassicJudgement& judgement) const {
  // What is compared: the operation of a batch in which they differ, else its
  // end; the first if it was not joined by all.
  const Disagreement* const found =
      row.disagreement == Collective::kNone
          ? nullptr
          : &table_.disagreements[row.disagreement];
  std::size_t position = judgement.problem ? 0 : ~std::size_t{0};
  if (found != nullptr)
    position = found->position;
  const Party* shown = nullptr;
  for (std::size_t i = 0; i < parties.size(); ++i) {
    const Party& party = parties[i];
    const auto at =
        std::ranges::lower_bound(party, position, {}, &Match::position);
    judgement.joined[i].shown.entry =
        (at == party.end() ? party.back() : *at).entry;
    if (shown == nullptr && party.front().agrees)
      shown = &party;
  }
  const auto shown_place =
      static_cast<std::size_t>(shown == nullptr ? 0 : shown - parties.data());
  judgement.shown = judgement.joined[shown_place].shown;
  std::vector<ClassicError> errors;
  if (found == nullptr)
    return errors;
  const CallId expected = call_of(judgement.shown);
  const std::size_t members = job_.group(row.group).members.size();
  // Nobody differs from the others, but the call can't be right.
  const bool contradicts = !found->blocks && found->differing.empty();
  for (std::size_t i = 0; i < parties.size(); ++i) {
    const ClassicEntry where = judgement.joined[i].shown;
    if (contradicts) {
      errors.push_back(
          {where, ClassicMismatch::kSize,
           contradiction_text(matching_.calls(), expected, members)});
    } else if (!parties[i].front().agrees) {
      const CallId call = call_of(where);
      ClassicDifference difference = difference_between(
          job_, matching_.operation(expected), matching_.operation(call),
          job_.tables.call(expected), job_.tables.call(call),
          found->difference);
      errors.push_back(
          {where, difference.mismatch, std::move(difference.text)});
    }
  }
  return errors;
}

bool ClassicJudge::has_finished(const Collective& row,
                                const ClassicJoined& one) const {
  const Lane* const lane =
      matching_.lane(row.group, job_.ranks[one.shown.rank].rank);
  const Slot* const slot = lane == nullptr ? nullptr : lane->find(row.sequence);
  return slot != nullptr && matching_.proves_all_joined(*lane, *slot);
}

// Whether the rank's oldest operation is one that others finished long ago.
bool ClassicJudge::is_stalled(const ClassicJoined& joined,
                              std::int64_t finished) const {
  return oldest_pending_[joined.shown.rank] == joined.shown.entry &&
         matching_.latest(joined.shown.rank) - kSameMoment >= finished;
}

// A rank whose operation has not started while that of others has, or that
// has not finished what others have, has a stalled device.
std::vector<ClassicError> ClassicJudge::compare_states(
    const Collective& row, ClassicJudgement& judgement) const {
  std::vector<ClassicError> errors;
  const Entry first = entry_at(job_, judgement.joined.front().shown);
  const Operation& operation = matching_.operation(first.call);
  if (row.earlier || operation.may_end_early() || !matching_.completes(first) ||
      operation.kind == OperationKind::kCoalesced)
    return errors;
  const ClassicJoined* best = nullptr;
  State furthest = State::kScheduled;
  bool differ = false;
  const auto state_of = [&](const ClassicJoined& one) {
    return job_.ranks[one.shown.rank].entries.state(one.shown.entry);
  };
  for (const ClassicJoined& one : judgement.joined) {
    const State state = state_of(one);
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
      const std::int64_t end = entry_at(job_, one.shown).completed;
      if (has_finished(row, one) && (finished == 0 || end < finished)) {
        finished = end;
        best = &one;
      }
    }
    if (finished == 0)
      return errors;
  }
  for (const ClassicJoined& one : judgement.joined) {
    const State state = state_of(one);
    const bool late =
        furthest == State::kStarted
            ? state == State::kScheduled && one.pending &&
                  oldest_pending_[one.shown.rank] == one.shown.entry
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

ClassicJudgement ClassicJudge::collective(const Collective& row) const {
  const std::vector<Party> parties = this->parties(row);
  ClassicJudgement judgement;
  for (const Party& party : parties) {
    judgement.joined.push_back(
        {.shown = {party.front().rank, party.front().entry},
         .pending = !party.front().done});
    judgement.batch |= party.size() > 1;
  }
  Absent absent = this->absent(row, parties);
  if (!absent.missing.empty() || !absent.without_dump.empty())
    judgement.problem = ClassicProblem{
        .kind = absent.without_dump.empty() ? ClassicProblemKind::kMissingRanks
                                            : ClassicProblemKind::kMissingDumps,
        .missing = std::move(absent.missing),
        .without_dump = std::move(absent.without_dump)};
  std::vector<ClassicError> errors = differences(row, parties, judgement);
  if (errors.empty() && !judgement.batch && row.difference == Difference::kNone)
    errors = compare_states(row, judgement);
  if (row.blocks && row.difference == Difference::kSizes &&
      matching_.operation(row.call).kind == OperationKind::kAllToAll) {
    ClassicProblem numel = {.kind = ClassicProblemKind::kNumel};
    const auto add = [](std::int64_t& sum, std::int64_t more) {
      if (__builtin_add_overflow(sum, more, &sum))
        sum = std::numeric_limits<std::int64_t>::max();
    };
    for (const ClassicJoined& one : judgement.joined) {
      add(numel.input_numel, matching_.calls().input_numel(call_of(one.shown)));
      add(numel.output_numel,
          matching_.calls().output_numel(call_of(one.shown)));
    }
    judgement.shown = judgement.joined.front().shown;
    numel.errors.push_back({judgement.shown, ClassicMismatch::kSize, ""});
    judgement.problem = std::move(numel);
  } else if (!errors.empty()) {
    if (!judgement.problem)
      judgement.problem.emplace();
    if (judgement.problem->kind != ClassicProblemKind::kMissingRanks)
      judgement.problem->kind = ClassicProblemKind::kErrors;
    judgement.problem->errors = std::move(errors);
  }
  return judgement;
}

ClassicJudgement ClassicJudge::message(const Collective& row,
                                       std::uint32_t rank) const {
  const Party matches =
      Party(table_.matches).subspan(row.first_match, row.match_count);
  const Match& own =
      matches.front().rank == rank ? matches.front() : matches.back();
  const Match& other =
      &own == &matches.front() ? matches.back() : matches.front();
  const auto transfers = matching_.transfers(own.rank);
  const Transfer& transfer =
      *std::ranges::lower_bound(transfers, own.entry, {}, &Transfer::entry);
  const Rank own_rank = job_.ranks[own.rank].rank;
  ClassicJudgement judgement;
  judgement.point_to_point = true;
  judgement.shown = {own.rank, own.entry};
  judgement.peers[0] = own_rank;
  judgement.peers[1] = transfer.peer.value < 0 ? own_rank : transfer.peer;
  for (const Match& match : matches)
    judgement.joined.push_back(
        {.shown = {match.rank, match.entry}, .pending = !match.done});
  std::ranges::sort(judgement.joined, {},
                    [](const ClassicJoined& one) { return one.shown.rank; });
  judgement.evident = !own.done;
  if (matches.size() > 1) {
    if (row.difference == Difference::kNone)
      return judgement;
    const Call& expected = job_.tables.call(call_of(judgement.shown));
    const ClassicEntry where = {other.rank, other.entry};
    const Call& found = job_.tables.call(call_of(where));
    const bool sizes = row.difference == Difference::kSizes;
    const auto text = [&](const Call& call, bool inputs) {
      return sizes
                 ? sizes_text(job_.tables, inputs ? call.inputs : call.outputs)
                 : dtype_set_text(job_.tables, inputs ? call.input_dtypes
                                                      : call.output_dtypes);
    };
    judgement.problem.emplace();
    judgement.problem->errors.push_back(
        {where, sizes ? ClassicMismatch::kSize : ClassicMismatch::kDtype,
         fmt::format("Expected {} {}: '{}' does not match found {} {}: '{}'",
                     transfer.send ? "input" : "output",
                     sizes ? "sizes" : "dtypes", text(expected, transfer.send),
                     transfer.send ? "output" : "input",
                     sizes ? "sizes" : "dtypes", text(found, !transfer.send))});
    return judgement;
  }
  const RankDump* const peer = job_.find(transfer.peer);
  if (transfer.other == Presence::kAbsent)
    judgement.problem = ClassicProblem{
        .kind = ClassicProblemKind::kMissingRanks, .missing = {transfer.peer}};
  else if (!own.done && transfer.peer.value >= 0 &&
           (peer == nullptr || !peer->complete))
    judgement.problem =
        ClassicProblem{.kind = ClassicProblemKind::kMissingDumps,
                       .without_dump = {transfer.peer}};
  return judgement;
}

}  // namespace postflight
