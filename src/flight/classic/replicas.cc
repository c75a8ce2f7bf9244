#include "flight/classic/replicas.h"

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
