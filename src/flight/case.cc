#include "flight/case.h"

#include <algorithm>

#include "flight/rank_set.h"

namespace postflight {

std::string Case::group_text(GroupId id) const {
  const Group& group = job.group(id);
  const TextId label =
      group.description != TextId{} ? group.description : group.name;
  const auto same = std::ranges::count_if(job.groups, [&](const Group& other) {
    return other.description == group.description;
  });
  if (same > 1 && group.description != TextId{})
    return fmt::format("{} (ranks {})", job.text(label),
                       rank_set_text(group.members));
  return std::string(job.text(label));
}

std::string Case::operation_text(const Wait& wait) const {
  const Wait::Waiter& waiter = wait.waiting[0];
  const RankDump* const dump = job.find(graph.world[waiter.rank]);
  const Call& call = job.call(dump->entries[waiter.entry]);
  return std::string(job.operation(call).name);
}

std::string Case::wait_text(const Wait& wait) const {
  if (wait.transfer)
    return fmt::format("{} {} rank {} in {}", operation_text(wait),
                       wait.transfer->send ? "to" : "from",
                       wait.transfer->peer.value, group_text(wait.group));
  return fmt::format("{} #{} of {}", operation_text(wait), wait.sequence,
                     group_text(wait.group));
}

std::string Case::ranks_text(const std::vector<Rank>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s",
                     rank_set_text(ranks));
}

}  // namespace postflight
