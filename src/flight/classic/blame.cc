#include "flight/classic/blame.h"

#include <algorithm>
#include <map>
#include <utility>

namespace postflight {
namespace {

// Whether the rank waits in something that its recorder has no entry of: gloo
// counts messages, but does not list them.
bool waits_unrecorded(const Matching& matching, const RankDump& dump) {
  return !dump.entries.empty() &&
         matching.operation(dump.entries.call(0)).backend == "gloo" &&
         std::ranges::any_of(dump.statuses, [](const GroupStatus& status) {
           return status.last_enqueued > status.last_completed;
         });
}

}  // namespace

ClassicBlame::ClassicBlame(const Matching& matching, const ClassicJudge& judge)
    : job_(matching.job()), standings_(job_.ranks.size(), Standing::kInCircle) {
  // An operation that ranks wait in, and whom it waits for.
  struct Wait {
    std::vector<std::uint32_t> waiting;
    std::vector<std::uint32_t> missing;
    std::vector<std::uint32_t> blamed;
    bool ends_here = false;  // nobody is missing, or one without a dump
  };
  std::vector<Wait> waits;
  std::map<std::uint32_t, std::size_t> known;  // by row of the table
  const auto rank_number = [&](Rank rank) {
    return static_cast<std::uint32_t>(job_.find(rank) - job_.ranks.data());
  };

  std::vector<std::uint32_t> resolved;
  for (std::uint32_t rank = 0; rank < job_.ranks.size(); ++rank) {
    const std::uint32_t entry = judge.oldest_pending(rank);
    if (entry == ClassicJudge::kNone) {
      standings_[rank] = waits_unrecorded(matching, job_.ranks[rank])
                             ? Standing::kHeldUp
                             : Standing::kFree;
      resolved.push_back(rank);
      continue;
    }
    const auto [found, is_new] =
        known.try_emplace(judge.row_of(rank, entry), waits.size());
    if (is_new) {
      const ClassicJudgement judgement = judge.judge(found->first, rank);
      Wait wait;
      const auto& problem = judgement.problem;
      if (problem) {
        for (const Rank missing : problem->missing)
          wait.missing.push_back(rank_number(missing));
        for (const ClassicError& error : problem->errors)
          wait.blamed.push_back(error.where.rank);
        std::ranges::sort(wait.blamed);
      }
      wait.ends_here =
          wait.missing.empty() || (problem && !problem->without_dump.empty());
      waits.push_back(std::move(wait));
    }
    Wait& wait = waits[found->second];
    if (std::ranges::binary_search(wait.blamed, rank)) {
      standings_[rank] = Standing::kFree;
      resolved.push_back(rank);
      continue;
    }
    wait.waiting.push_back(rank);
  }

  // From those who wait for nobody back to all who wait for them.
  std::vector<std::vector<std::size_t>> waits_for(job_.ranks.size());
  for (std::size_t i = 0; i < waits.size(); ++i)
    for (const std::uint32_t missing : waits[i].missing)
      waits_for[missing].push_back(i);
  const auto resolve = [&](Wait& wait) {
    for (const std::uint32_t rank : std::exchange(wait.waiting, {})) {
      standings_[rank] = Standing::kHeldUp;
      resolved.push_back(rank);
    }
  };
  for (Wait& wait : waits)
    if (wait.ends_here)
      resolve(wait);
  while (!resolved.empty()) {
    const std::uint32_t rank = resolved.back();
    resolved.pop_back();
    for (const std::size_t wait : waits_for[rank])
      resolve(waits[wait]);
  }
}

std::vector<Rank> ClassicBlame::accused(const std::vector<Rank>& missing,
                                        std::size_t joined) const {
  std::vector<Rank> found;
  for (const Rank rank : missing) {
    const RankDump* const dump = job_.find(rank);
    if (dump == nullptr)
      continue;
    const Standing standing =
        standings_[static_cast<std::size_t>(dump - job_.ranks.data())];
    if (standing == Standing::kFree ||
        (standing == Standing::kInCircle && missing.size() <= joined))
      found.push_back(rank);
  }
  return found;
}

}  // namespace postflight
