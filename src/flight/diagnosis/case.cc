#include "flight/diagnosis/case.h"

#include <algorithm>

#include "flight/model/rank_set.h"

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

namespace {

Operation operation_of(const Case& facts, const Wait& wait) {
  const Wait::Waiter& waiter = wait.waiting[0];
  const RankDump* const dump = facts.job.find(facts.graph.world[waiter.rank]);
  return facts.job.operation(facts.job.call(dump->entries[waiter.entry]));
}

}  // namespace

std::string Case::operation_text(const Wait& wait) const {
  return std::string(operation_of(*this, wait).name);
}

bool Case::needs_all(const Wait& wait) const {
  return operation_of(*this, wait).needs_all();
}

std::string Case::missed_text(const Wait& wait) const {
  if (!wait.transfer)
    return "joined " + wait_text(wait);
  return fmt::format("{} rank {} {} in {}",
                     wait.transfer->send ? "received what" : "sent what",
                     graph.world[wait.waiting[0].rank].value,
                     wait.transfer->send ? "sends" : "waits for",
                     group_text(wait.group));
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
  return ranks_label(ranks);
}

}  // namespace postflight
