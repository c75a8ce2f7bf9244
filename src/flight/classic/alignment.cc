#include "flight/classic/alignment.h"

#include <algorithm>
#include <map>
#include <utility>

namespace postflight {
namespace {

std::int64_t latest_start(const Job& job) {
  std::int64_t latest = 0;
  for (const RankDump& dump : job.ranks)
    if (!dump.entries.empty())
      latest = std::max(latest, dump.entries[0].record_id);
  return latest;
}

bool groups_start_together(const Job& job,
                           const std::vector<std::uint32_t>& starts) {
  std::map<std::pair<GroupId, bool>, std::int64_t> firsts;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const Entries& entries = job.ranks[rank].entries;
    if (!entries.empty() && starts[rank] == entries.size())
      return false;
    std::map<std::pair<GroupId, bool>, std::int64_t> own;
    for (std::size_t i = starts[rank]; i < entries.size(); ++i) {
      const Call& call = job.tables.call(entries.call(i));
      const bool point_to_point = call.point_to_point != 0;
      own.try_emplace(
          {call.group, point_to_point},
          point_to_point ? entries[i].p2p_sequence : entries.sequence(i));
    }
    for (const auto& [group, sequence] : own)
      if (firsts.try_emplace(group, sequence).first->second != sequence)
        return false;
  }
  return true;
}

}  // namespace

std::vector<std::uint32_t> aligned_starts(const Job& job) {
  std::vector<std::uint32_t> starts(job.ranks.size(), 0);
  const std::int64_t latest = latest_start(job);
  if (latest == 0)
    return starts;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const Entries& entries = job.ranks[rank].entries;
    std::uint32_t start = 0;
    while (start < entries.size() && entries[start].record_id < latest)
      ++start;
    starts[rank] = start;
  }
  if (!groups_start_together(job, starts))
    std::ranges::fill(starts, 0);
  return starts;
}

}  // namespace postflight
