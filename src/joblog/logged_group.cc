#include "joblog/logged_group.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

namespace postflight {

void LoggedGroup::add_place(Rank place, Rank rank) {
  const auto [at, is_new] = ranks_at.try_emplace(place, rank);
  crossed = crossed || (!is_new && at->second != rank);
}

std::optional<GroupLayout> LoggedGroup::layout() const {
  if (ranks_at.size() < 2)
    return std::nullopt;
  const auto [g, r] = *ranks_at.begin();
  const auto [last_g, last_r] = *ranks_at.rbegin();
  const std::int64_t places = std::int64_t{last_g.value} - g.value;
  const std::int64_t span = std::int64_t{last_r.value} - r.value;
  if (span <= 0 || span % places != 0)
    return std::nullopt;
  const std::int64_t stride = span / places;
  const GroupLayout found{r.value - stride * g.value, stride};
  for (const auto& [place, rank] : ranks_at)
    if (found.first + stride * place.value != rank.value)
      return std::nullopt;
  return found;
}

// Calls that were compared before they were made say it all. They were
// compared at one place, whatever its number is to each.
void LoggedGroup::join_compared(std::span<const LogProgress> lines) {
  const auto compared = [&](const LoggedMember& one) {
    return lines[one.source].fingerprint;
  };
  if (std::ranges::none_of(members, compared))
    return;
  std::erase_if(members, std::not_fn(compared));
  std::map<std::int64_t, int> numbers;
  for (const LoggedMember& one : members)
    ++numbers[one.reach.pending.value_or(0)];
  const std::int64_t number =
      std::ranges::max_element(numbers, {}, [](const auto& count) {
        return count.second;
      })->first;
  for (LoggedMember& one : members)
    one.reach = {.done = number - 1, .enqueued = number, .pending = number};
}

void LoggedGroup::keep_oldest() {
  std::ranges::stable_sort(
      members, [](const LoggedMember& a, const LoggedMember& b) {
        return std::pair(a.rank, !a.reach.pending.has_value()) <
               std::pair(b.rank, !b.reach.pending.has_value());
      });
  std::vector<LoggedMember> kept;
  for (LoggedMember& member : members) {
    if (kept.empty() || kept.back().rank != member.rank) {
      kept.push_back(member);
      continue;
    }
    // Several operations timed out: the oldest.
    if (member.reach.pending && kept.back().reach.pending &&
        !member.reach.transfer &&
        *member.reach.pending < *kept.back().reach.pending)
      kept.back() = member;
  }
  members = std::move(kept);
}

void LoggedGroup::settle(std::span<const LogProgress> lines) {
  join_compared(lines);
  keep_oldest();
  const bool transfers = std::ranges::any_of(
      members, [](const LoggedMember& one) { return one.reach.transfer; });
  std::set<std::int64_t> pending;
  for (const LoggedMember& one : members) {
    if (one.reach.pending && !one.reach.transfer)
      pending.insert(*one.reach.pending);
    doubtful = doubtful || !one.reach.firm;
  }
  for (LoggedMember& one : members) {
    const bool timed_out = lines[one.source].pending.has_value();
    if (transfers && !timed_out)
      one.reach.dropped = true;
    if (one.reach.pending || pending.empty())
      continue;
    // It would have joined what comes before.
    one.reach.dropped |= !pending.contains(one.reach.enqueued + 1) &&
                         one.reach.enqueued < *pending.rbegin();
  }
  find_size(lines);
}

// What is gathered has the parts of all.
void LoggedGroup::find_size(std::span<const LogProgress> lines) {
  std::set<std::int64_t> sizes;
  for (const LoggedMember& one : members) {
    const LogProgress& said = lines[one.source];
    if (!said.pending || said.pending->inputs <= 0 ||
        said.pending->outputs <= 0)
      continue;
    const std::int64_t in = said.pending->inputs;
    const std::int64_t out = said.pending->outputs;
    if (said.pending->type == "_ALLGATHER_BASE" && out % in == 0)
      sizes.insert(out / in);
    if (said.pending->type == "_REDUCE_SCATTER_BASE" && in % out == 0)
      sizes.insert(in / out);
  }
  if (!size && sizes.size() == 1)
    size = *sizes.begin();
}

void LoggedGroup::lend_sizes(std::span<const LogProgress> lines) {
  std::map<std::pair<std::int64_t, std::string_view>, std::size_t> known;
  for (LoggedMember& one : members) {
    one.sizes_from = one.source;
    if (const auto& said = lines[one.source];
        said.pending && said.pending->inputs >= 0)
      known.try_emplace({said.pending->sequence, said.pending->type},
                        one.source);
  }
  for (LoggedMember& one : members) {
    const auto& said = lines[one.source];
    if (!said.pending || said.pending->inputs >= 0)
      continue;
    const auto found = known.find({said.pending->sequence, said.pending->type});
    if (found != known.end())
      one.sizes_from = found->second;
  }
}

}  // namespace postflight
