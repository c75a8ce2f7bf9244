// torchfrtrace takes the first entry of the first rank, looks for its partners
// in the lists of all others, and removes what it found, until all lists are
// empty. We walk in the same order, so that the report and the tables come out
// in its order, but read from the table of collectives what belongs together
// and who differs, as everything else does.
//
// Two rules of ours decide who is reported. Ranks that differ are compared with
// the majority, not with the first rank. And a rank that is missing in one
// group because it waits in another is not accused: see ClassicBlame.
#include "flight/classic/analysis.h"

#include <algorithm>

#include "flight/classic/alignment.h"
#include "flight/classic/blame.h"
#include "flight/classic/judge.h"

namespace postflight {
namespace {

// In the order in which the ranks list them.
std::vector<GroupId> groups_in_order(const Job& job) {
  std::vector<GroupId> groups;
  std::vector<bool> seen(job.groups.size(), false);
  for (const RankDump& dump : job.ranks)
    for (const GroupId group : dump.groups)
      if (!seen[group.value]) {
        seen[group.value] = true;
        groups.push_back(group);
      }
  return groups;
}

class Walk {
 public:
  Walk(const Matching& matching, const CollectiveTable& table,
       const ClassicOptions& options)
      : job_(matching.job()),
        options_(options),
        table_(table),
        judge_(matching, table),
        blame_(matching, judge_),
        visited_(table.collectives.size(), false),
        mismatches_(job_.groups.size(), 0),
        given_up_(job_.groups.size(), false) {}

  ClassicAnalysis run() {
    analysis_.groups = groups_in_order(job_);
    const std::vector<std::uint32_t> starts = aligned_starts(job_);
    for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank)
      for (std::uint32_t i = starts[rank]; i < job_.ranks[rank].entries.size();
           ++i)
        visit(rank, i);
    return std::move(analysis_);
  }

 private:
  void visit(std::uint32_t rank, std::uint32_t entry) {
    const std::uint32_t row = judge_.row_of(rank, entry);
    if (row == ClassicJudge::kNone || visited_[row])
      return;
    const GroupId group = table_.collectives[row].group;
    if (given_up_[group.value])
      return;
    visited_[row] = true;
    add(judge_.judge(row, rank), group);
  }

  void add(ClassicJudgement judgement, GroupId group) {
    note_unfinished(judgement);
    ClassicCollective collective = {
        .group = group,
        .shown = judgement.shown,
        .first_call = analysis_.calls.size(),
        .call_count = static_cast<std::uint32_t>(judgement.joined.size()),
        .batch = judgement.batch,
        .peers = {judgement.peers[0], judgement.peers[1]},
        .point_to_point = judgement.point_to_point};
    for (const ClassicJoined& joined : judgement.joined)
      analysis_.calls.push_back({joined.shown, analysis_.collectives.size()});
    if (judgement.problem) {
      ClassicProblem problem = *std::move(judgement.problem);
      if (problem.kind == ClassicProblemKind::kMissingRanks) {
        problem.accused =
            blame_.accused(problem.missing, judgement.joined.size());
        problem.reported = !problem.accused.empty() && judgement.evident;
      }
      // What a cut dump does not have is no mismatch.
      const bool is_cut = problem.kind == ClassicProblemKind::kMissingDumps &&
                          are_cut(job_, problem.without_dump);
      mismatches_[group.value] += problem.reported && !is_cut ? 1 : 0;
      collective.problem = static_cast<std::int64_t>(analysis_.problems.size());
      analysis_.problems.push_back(std::move(problem));
    }
    collective.matched =
        collective.problem < 0 && mismatches_[group.value] == 0;
    if (mismatches_[group.value] > options_.mismatch_cap) {
      collective.gave_up = true;
      given_up_[group.value] = true;
    }
    analysis_.collectives.push_back(collective);
  }

  void note_unfinished(const ClassicJudgement& judgement) {
    ClassicUnfinished found;
    std::int64_t oldest = 0;
    for (const ClassicJoined& joined : judgement.joined) {
      // An operation that was never launched reads completed.
      const Entries& entries = job_.ranks[joined.shown.rank].entries;
      if (!joined.pending ||
          entries.state(joined.shown.entry) == State::kCompleted)
        continue;
      const std::int64_t created = entries.created(joined.shown.entry);
      if (found.ranks.empty() || created < oldest) {
        oldest = created;
        found.where = joined.shown;
      }
      found.ranks[entries.state(joined.shown.entry)].push_back(
          job_.ranks[joined.shown.rank].rank);
    }
    if (found.ranks.empty() || (analysis_.unfinished && oldest >= oldest_))
      return;
    oldest_ = oldest;
    for (auto& [state, ranks] : found.ranks)
      std::ranges::sort(ranks);
    analysis_.unfinished = std::move(found);
  }

  const Job& job_;
  const ClassicOptions& options_;
  const CollectiveTable& table_;
  ClassicJudge judge_;
  ClassicBlame blame_;
  std::vector<bool> visited_;             // rows of the table
  std::vector<std::int64_t> mismatches_;  // by group
  std::vector<bool> given_up_;
  std::int64_t oldest_ = 0;
  ClassicAnalysis analysis_;
};

}  // namespace

bool are_cut(const Job& job, std::span<const Rank> ranks) {
  return std::ranges::all_of(ranks, [&job](Rank rank) {
    const RankDump* const dump = job.find(rank);
    return dump != nullptr && !dump->complete;
  });
}

ClassicAnalysis analyze_classic(const Matching& matching,
                                const CollectiveTable& table,
                                const ClassicOptions& options) {
  return Walk(matching, table, options).run();
}

std::vector<Rank> expected_ranks(const Job& job,
                                 const ClassicCollective& collective) {
  if (!collective.point_to_point)
    return job.group(collective.group).members;
  std::vector<Rank> pair = {collective.peers[0], collective.peers[1]};
  std::ranges::sort(pair);
  return pair;
}

}  // namespace postflight
