#include "flight/classic/blame.h"

#include <algorithm>
#include <map>
#include <utility>

namespace postflight {

ClassicBlame::ClassicBlame(const Job& job, const ClassicIndex& index,
                           const ClassicJudge& judge)
    : job_(job), standings_(job.ranks.size(), Standing::kInCircle) {
  // An operation that ranks wait in, and whom it waits for.
  struct Wait {
    std::vector<std::uint32_t> waiting;
    std::vector<std::uint32_t> missing;
    std::vector<std::uint32_t> blamed;
    bool ends_here = false;  // nobody is missing, or one without a dump
  };
  std::vector<Wait> waits;
  // By group and sequence number, or by the lower number of two messages.
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> known;
  const auto key_of = [&](std::uint32_t rank) {
    const std::uint32_t entry = index.oldest_pending(rank);
    const ClassicPlace place = index.place(rank, entry);
    if (place.is_message())
      return std::pair<std::int64_t, std::int64_t>(
          -1, std::min(place.number, index.message(place.number).partner));
    const Entries& entries = job.ranks[rank].entries;
    const GroupId group = job.tables.call(entries.call(entry)).group;
    return std::pair<std::int64_t, std::int64_t>(group.value,
                                                 entries.sequence(entry));
  };
  const auto rank_number = [&](Rank rank) {
    return static_cast<std::uint32_t>(job.find(rank) - job.ranks.data());
  };

  std::vector<std::uint32_t> resolved;
  for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank) {
    if (index.oldest_pending(rank) == ClassicPlace::kNone) {
      standings_[rank] =
          index.waits_unrecorded(rank) ? Standing::kHeldUp : Standing::kFree;
      resolved.push_back(rank);
      continue;
    }
    const auto [found, is_new] = known.try_emplace(key_of(rank), waits.size());
    if (is_new) {
      const ClassicJudgement judgement = judge.oldest_pending(rank);
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
  std::vector<std::vector<std::size_t>> waits_for(job.ranks.size());
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
