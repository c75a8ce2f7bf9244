#include "flight/model/replicas.h"

#include <algorithm>
#include <map>
#include <utility>

namespace postflight {
namespace {

std::int32_t sum(std::int32_t a, std::int32_t b) {
  std::int32_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? a : result;
}

}  // namespace

// One of these is whole: files whose names count ranks from 1, or from the
// first of a node, look alike otherwise.
std::optional<std::int32_t> replica_size(const Job& job) {
  std::optional<std::int32_t> size;
  std::map<std::int32_t, std::int32_t> dumps;  // of each replica
  for (const RankDump& dump : job.ranks) {
    const auto is_default = [&job](GroupId id) {
      const Group& group = job.group(id);
      return group.configured && !group.members.empty() &&
             job.text(group.description) == "default_pg";
    };
    const auto found = std::ranges::find_if(dump.groups, is_default);
    if (found == dump.groups.end())
      return std::nullopt;
    const std::vector<Rank>& members = job.group(*found).members;
    const auto count = static_cast<std::int32_t>(members.size());
    if (members.front().value != 0 || members.back().value != count - 1 ||
        size.value_or(count) != count)
      return std::nullopt;
    size = count;
    ++dumps[dump.rank.value / count];
  }
  const bool any_whole = std::ranges::any_of(
      dumps, [&size](const auto& one) { return one.second == *size; });
  return dumps.size() > 1 && any_whole ? size : std::nullopt;
}

void shift_replica_groups(Job& job, std::int32_t replica_size) {
  std::map<std::pair<GroupId, std::int32_t>, GroupId> shifted;
  const auto shift = [&](GroupId id, std::int32_t first) {
    const auto next = static_cast<std::uint32_t>(job.groups.size());
    const auto [found, is_new] =
        shifted.try_emplace({id, first}, GroupId{next});
    if (is_new) {
      Group group = job.group(id);
      for (Rank& member : group.members)
        member.value = sum(member.value, first);
      std::ranges::sort(group.members);
      job.groups.push_back(std::move(group));
    }
    return found->second;
  };
  for (RankDump& dump : job.ranks) {
    const std::int32_t first = dump.rank.value / replica_size * replica_size;
    std::map<GroupId, GroupId> moved;
    for (GroupId& group : dump.groups)
      if (first != 0 &&
          job.text(job.group(group).description) == "default_pg") {
        const GroupId old = group;
        group = shift(old, first);
        moved[old] = group;
      }
    if (moved.empty())
      continue;
    std::ranges::sort(dump.groups);
    dump.entries.change_calls([&](CallId id) {
      Call call = job.tables.call(id);
      const auto found = moved.find(call.group);
      if (found == moved.end())
        return id;
      call.group = found->second;
      return job.tables.add_call(call);
    });
  }
  // They were said to be in groups that they are not in.
  std::erase_if(job.findings, [](const Finding& finding) {
    return finding.kind == "rank_not_in_group";
  });
}

}  // namespace postflight
