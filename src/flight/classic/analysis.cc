// torchfrtrace takes the first entry of the first rank, looks for its partners
// in the lists of all others, and removes what it found, until all lists are
// empty. We walk in the same order, so that the report and the tables come out
// in its order, but find the partners in an index by group and sequence
// number, which makes it linear in the entries.
//
// Who is at fault is decided by three rules of ours. Ranks that differ are
// compared with the majority, not with the first rank. A rank that is missing
// in one group because it waits in another is not accused: see ClassicBlame.
// And an entry that others have finished is not missing on a rank whose dump
// was taken earlier.
#include "flight/classic/analysis.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "flight/classic/blame.h"
#include "flight/classic/calls.h"
#include "flight/classic/index.h"
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
  Walk(const Job& job, const ClassicOptions& options)
      : job_(job),
        options_(options),
        calls_(job),
        index_(job, calls_),
        judge_(job, calls_, index_),
        blame_(job, index_, judge_),
        mismatches_(job.groups.size(), 0),
        given_up_(job.groups.size(), false) {}

  ClassicAnalysis run() {
    analysis_.groups = groups_in_order(job_);
    for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
      const Entries& entries = job_.ranks[rank].entries;
      for (std::uint32_t i = 0; i < entries.size(); ++i)
        visit(rank, i, job_.tables.call(entries.call(i)).group);
    }
    return std::move(analysis_);
  }

 private:
  void visit(std::uint32_t rank, std::uint32_t entry, GroupId group) {
    if (given_up_[group.value])
      return;
    const ClassicPlace place = index_.place(rank, entry);
    if (place.is_step()) {
      const ClassicStep& step =
          index_.traces(group)[place.trace].steps[place.number];
      if (!step.taken)
        add(judge_.collective(group, step.sequence), group);
    } else if (place.is_message()) {
      if (!index_.message(place.number).taken)
        add(judge_.message(place.number), group);
    }
  }

  void add(ClassicJudgement judgement, GroupId group) {
    judge_.take(judgement);
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
      mismatches_[group.value] += problem.reported ? 1 : 0;
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
      if (!joined.pending)
        continue;
      const std::int64_t created = entry_at(job_, joined.shown).created;
      if (found.ranks.empty() || created < oldest) {
        oldest = created;
        found.where = joined.shown;
      }
      found.ranks.push_back(job_.ranks[joined.shown.rank].rank);
    }
    if (found.ranks.empty() || (analysis_.unfinished && oldest >= oldest_))
      return;
    oldest_ = oldest;
    std::ranges::sort(found.ranks);
    analysis_.unfinished = std::move(found);
  }

  const Job& job_;
  const ClassicOptions& options_;
  ClassicCalls calls_;
  ClassicIndex index_;
  ClassicJudge judge_;
  ClassicBlame blame_;
  std::vector<std::int64_t> mismatches_;  // by group
  std::vector<bool> given_up_;
  std::int64_t oldest_ = 0;
  ClassicAnalysis analysis_;
};

}  // namespace

std::string_view mismatch_name(ClassicMismatch mismatch) {
  switch (mismatch) {
    case ClassicMismatch::kType:
      return "COLLECTIVE_TYPE_MISMATCH";
    case ClassicMismatch::kSize:
      return "SIZE_OR_SYNTAX_MISMATCH";
    case ClassicMismatch::kState:
      return "COLLECTIVE_STATE_MISMATCH";
    case ClassicMismatch::kDtype:
      return "COLLECTIVE_DTYPE_MISMATCH";
  }
  return "";
}

ClassicAnalysis analyze_classic(const Job& job, const ClassicOptions& options) {
  return Walk(job, options).run();
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
