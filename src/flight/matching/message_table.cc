#include "flight/matching/message_table.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>

namespace postflight {
namespace {

struct Ends {
  std::vector<EntryPlace> sends;
  std::vector<EntryPlace> receives;
};

using Key = std::tuple<GroupId, Rank, Rank>;

Rank member(const Group& group, std::int32_t place) {
  return place >= 0 && static_cast<std::size_t>(place) < group.members.size()
             ? group.members[static_cast<std::size_t>(place)]
             : Rank{-1};
}

class Pairing {
 public:
  Pairing(const Job& job, std::span<const EntryRoles> roles)
      : job_(job), roles_(roles) {}

  MessageStream pair(const Key& key, const Ends& ends) const {
    MessageStream stream{
        std::get<0>(key), std::get<1>(key), std::get<2>(key), {}};
    const std::ptrdiff_t shift = shift_of(ends);
    const auto sends = static_cast<std::ptrdiff_t>(ends.sends.size());
    const auto receives = static_cast<std::ptrdiff_t>(ends.receives.size());
    for (std::ptrdiff_t i = std::min<std::ptrdiff_t>(0, shift);
         i < std::max(sends, receives + shift); ++i) {
      Message message;
      if (i >= 0 && i < sends)
        message.send = ends.sends[static_cast<std::size_t>(i)];
      if (i >= shift && i < receives + shift)
        message.receive = ends.receives[static_cast<std::size_t>(i - shift)];
      // Between two lists that don't overlap there may be a gap.
      if (message.send.exists() || message.receive.exists())
        stream.messages.push_back(message);
    }
    return stream;
  }

 private:
  std::optional<std::ptrdiff_t> last_completed(
      std::span<const EntryPlace> places) const {
    for (std::size_t i = places.size(); i-- > 0;) {
      const Entries& entries = job_.ranks[places[i].rank].entries;
      const std::uint32_t decisive =
          roles_[places[i].rank].decisive(places[i].entry);
      if (entries[decisive].state == State::kCompleted)
        return static_cast<std::ptrdiff_t>(i);
    }
    return std::nullopt;
  }

  // How many places the receives lie behind the sends.
  std::ptrdiff_t shift_of(const Ends& ends) const {
    if (ends.sends.empty() || ends.receives.empty())
      return 0;
    if (!ring_has_wrapped(job_.ranks[ends.sends[0].rank]) &&
        !ring_has_wrapped(job_.ranks[ends.receives[0].rank]))
      return 0;
    const auto sent = last_completed(ends.sends);
    const auto received = last_completed(ends.receives);
    return sent && received ? *sent - *received : 0;
  }

  const Job& job_;
  const std::span<const EntryRoles> roles_;
};

}  // namespace

std::vector<MessageStream> pair_messages(const Job& job,
                                         std::span<const Operation> operations,
                                         std::span<const EntryRoles> roles) {
  std::map<Key, Ends> all;
  for (std::uint32_t r = 0; r < job.ranks.size(); ++r) {
    const RankDump& dump = job.ranks[r];
    // A rank has few distinct calls, and each has one partner.
    std::map<CallId, std::vector<EntryPlace>*> known;
    for (std::uint32_t i = 0; i < dump.entries.size(); ++i) {
      const EntryRole role = roles[r].roles[i];
      if (role != EntryRole::kSend && role != EntryRole::kReceive)
        continue;
      const CallId id = dump.entries.call(i);
      const auto [place, is_new] = known.try_emplace(id, nullptr);
      if (is_new) {
        const Operation& operation = operations[id.value];
        const GroupId group = job.tables.call(id).group;
        const bool sends = role == EntryRole::kSend;
        const Rank peer = member(
            job.group(group), sends ? operation.destination : operation.source);
        Ends& ends = sends ? all[{group, dump.rank, peer}]
                           : all[{group, peer, dump.rank}];
        place->second = sends ? &ends.sends : &ends.receives;
      }
      place->second->push_back({r, i});
    }
  }
  const Pairing pairing(job, roles);
  std::vector<MessageStream> streams;
  streams.reserve(all.size());
  for (const auto& [key, ends] : all)
    streams.push_back(pairing.pair(key, ends));
  return streams;
}

}  // namespace postflight
