#include "flight/model/job.h"

#include <algorithm>
#include <iterator>

namespace postflight {

bool Group::has(Rank rank) const {
  return std::ranges::binary_search(members, rank);
}

std::int32_t Group::place(Rank rank) const {
  const auto found = std::ranges::lower_bound(members, rank);
  return found == members.end() || *found != rank
             ? -1
             : static_cast<std::int32_t>(found - members.begin());
}

std::size_t RankDump::group_place(GroupId group) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(groups, group) -
                                  groups.begin());
}

const RankDump* Job::find(Rank rank) const {
  const auto found = std::ranges::lower_bound(ranks, rank, {}, &RankDump::rank);
  return found == ranks.end() || found->rank != rank ? nullptr : &*found;
}

std::string_view Job::host_of(Rank rank) const {
  if (const auto told = hosts.find(rank); told != hosts.end())
    return told->second;
  const RankDump* const dump = find(rank);
  return dump == nullptr ? std::string_view() : dump->host;
}

std::vector<Rank> Job::world() const {
  std::vector<Rank> all;
  for (const RankDump& dump : ranks)
    all.push_back(dump.rank);
  for (const Group& group : groups)
    all.insert(all.end(), group.members.begin(), group.members.end());
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<Rank> Job::without_dump() const {
  std::vector<Rank> missing = world();
  std::erase_if(missing, [&](Rank rank) { return find(rank) != nullptr; });
  return missing;
}

const SkippedFile* Job::skipped_of(Rank rank) const {
  const auto found = std::ranges::find(skipped, rank.value, &SkippedFile::rank);
  return found == skipped.end() ? nullptr : &*found;
}

std::vector<Rank> Job::with_unreadable_dump() const {
  const std::vector<Rank> without = without_dump();
  std::vector<Rank> found;
  for (const SkippedFile& file : skipped)
    if (!file.empty && std::ranges::binary_search(without, Rank{file.rank}))
      found.push_back({file.rank});
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<Finding> Job::all_findings() const {
  std::vector<Finding> all = findings;
  for (const SkippedFile& file : skipped) {
    const bool expected = file.empty || file.rank >= 0;
    all.push_back({file.empty ? "empty_dump" : "skipped_file",
                   expected ? Severity::kWarning : Severity::kNote,
                   "skipped: " + file.reason, file.file});
  }
  return all;
}

std::uint64_t Job::entry_count() const {
  std::uint64_t count = 0;
  for (const RankDump& dump : ranks)
    count += dump.entries.size();
  return count;
}

std::uint64_t Job::memory_bytes() const {
  std::uint64_t bytes = tables.memory_bytes();
  for (const RankDump& dump : ranks)
    bytes += dump.entries.memory_bytes();
  return bytes;
}

}  // namespace postflight
