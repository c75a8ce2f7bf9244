// Transfers have no number that two ranks share. The n-th send from one rank to
// another in a group meets the n-th receive there. Where a ring has wrapped,
// its first transfer is not the first of all.
//
// A rank numbers its batches, its collectives and all its records, also those
// that were overwritten. Where each batch of a group has one transfer of a
// channel, the batch's number is the transfer's place. A batch that lacked one
// leaves the rank with a record less than its numbers ask for, so the places
// are taken from ranks only whose records are as many as those of most ranks.
//
// Otherwise both sides are aligned at what is done. That is wrong where a send
// was received, but waits for the rest of its batch, or is done before its
// receive. Rejected: aligning by time, since clocks differ by more than a
// transfer takes.
#include "flight/matching/transfer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "flight/matching/entry_role.h"

namespace postflight {
namespace {

// What is known of the other side where it has no entry. `before`: its entries
// begin later; `any`: it has others in the same channel.
Presence unmatched(const Job& job, const Transfer& own, bool before, bool any) {
  if (own.peer.value < 0)
    return Presence::kUnknown;
  const RankDump* const peer = job.find(own.peer);
  if (peer == nullptr)
    return Presence::kNoDump;
  if (before)
    return Presence::kPassed;
  // The other side of what is done may be done and overwritten, too.
  const bool tells = !own.done || any || !ring_has_wrapped(*peer);
  return peer->complete && tells ? Presence::kAbsent : Presence::kUnknown;
}

// How many transfers of a channel a ring that has wrapped has lost.
class Census {
 public:
  Census(const Job& job, const std::vector<std::vector<Transfer>>& transfers)
      : job_(job), transfers_(transfers), batches_(transfers.size()) {
    std::map<std::uint64_t, std::size_t> ranks_of;
    std::vector<std::optional<std::uint64_t>> surplus(transfers.size());
    std::size_t known = 0;
    for (std::uint32_t r = 0; r < transfers.size(); ++r) {
      if (!read_batches(r))
        batches_[r].clear();
      if (batches_[r].empty())
        continue;
      surplus[r] = surplus_of(r);
      ++ranks_of[*surplus[r]];
      ++known;
    }
    const auto usual = std::ranges::max_element(
        ranks_of, {}, [](const auto& entry) { return entry.second; });
    constexpr std::size_t kEnough = 3;
    const bool clear = usual != ranks_of.end() && usual->second >= kEnough &&
                       usual->second * 2 > known;
    for (std::uint32_t r = 0; r < transfers.size(); ++r)
      if (!clear || surplus[r] != usual->first)
        batches_[r].clear();
  }

  // Nothing where that is not known.
  std::optional<std::int64_t> lost(
      const std::vector<TransferPlace>& side) const {
    if (side.empty())
      return std::nullopt;
    const TransferPlace place = side.front();
    const RankDump& dump = job_.ranks[place.rank];
    if (!ring_has_wrapped(dump))
      return 0;
    const Transfer& first = transfers_[place.rank][place.number];
    const auto found = batches_[place.rank].find(first.group);
    if (found == batches_[place.rank].end() ||
        std::ranges::count(found->second.parts, Part{first.peer, first.send}) !=
            1)
      return std::nullopt;
    return dump.entries.p2p_sequence(first.entry) - 1;
  }

 private:
  using Part = std::pair<Rank, bool>;  // the peer, and whether it is a send

  // The batches of a group on a rank.
  struct Batches {
    std::vector<Part> parts;  // of each of them
    std::size_t count = 0;
    std::int64_t last = 0;  // the number of the last one
  };

  // False if the rank's batches of a group differ. The first one in the ring
  // may lack its beginning.
  bool read_batches(std::uint32_t rank) {
    const std::vector<Transfer>& transfers = transfers_[rank];
    const Entries& entries = job_.ranks[rank].entries;
    std::map<GroupId, Batches>& groups = batches_[rank];
    std::vector<Part> parts;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const Transfer& transfer = transfers[i];
      const std::int64_t number = entries.p2p_sequence(transfer.entry);
      if (transfer.closing == transfer.entry || number < 1)
        return false;
      parts.emplace_back(transfer.peer, transfer.send);
      if (i + 1 < transfers.size() &&
          transfers[i + 1].closing == transfer.closing)
        continue;
      Batches& batches = groups[transfer.group];
      if (batches.count == 1)
        batches.parts = parts;
      else if (batches.count > 1 && batches.parts != parts)
        return false;
      batches.last = number;
      ++batches.count;
      parts.clear();
    }
    constexpr std::size_t kEnough = 3;
    return std::ranges::all_of(groups, [](const auto& group) {
      return group.second.count >= kEnough;
    });
  }

  // How many more records the rank made than its numbers tell of. What they do
  // not tell of is the same on all ranks.
  std::uint64_t surplus_of(std::uint32_t rank) const {
    const Entries& entries = job_.ranks[rank].entries;
    std::map<GroupId, std::int64_t> collectives;
    for (std::size_t i = 0; i < entries.size(); ++i)
      collectives[job_.tables.call(entries.call(i)).group] =
          entries.sequence(i);
    auto surplus =
        static_cast<std::uint64_t>(entries[entries.size() - 1].record_id);
    for (const auto& [group, last] : collectives)
      surplus -= static_cast<std::uint64_t>(last);
    for (const auto& [group, batches] : batches_[rank])
      surplus -=
          static_cast<std::uint64_t>(batches.last) * (batches.parts.size() + 1);
    return surplus;
  }

  const Job& job_;
  const std::vector<std::vector<Transfer>>& transfers_;
  std::vector<std::map<GroupId, Batches>> batches_;
};

// How the sides are shifted by what was lost of them; nothing if that is not
// known or they do not meet.
std::optional<std::ptrdiff_t> known_shift(const Census& census,
                                          const Channel& channel) {
  const std::optional<std::int64_t> sends = census.lost(channel.sends);
  const std::optional<std::int64_t> receives = census.lost(channel.receives);
  if (!sends || !receives)
    return std::nullopt;
  const std::int64_t shift = *receives - *sends;
  if (shift > static_cast<std::ptrdiff_t>(channel.sends.size()) ||
      -shift > static_cast<std::ptrdiff_t>(channel.receives.size()))
    return std::nullopt;
  return shift;
}

void pair(const Job& job, const Census& census, Channel& channel, bool from_any,
          std::vector<std::vector<Transfer>>& transfers) {
  const bool pairs =
      !from_any && !channel.sends.empty() && !channel.receives.empty();
  if (pairs) {
    const std::optional<std::ptrdiff_t> shift = known_shift(census, channel);
    channel.exact = shift.has_value();
    channel.shift =
        shift.value_or(static_cast<std::ptrdiff_t>(channel.sends_done) -
                       static_cast<std::ptrdiff_t>(channel.receives_done));
  }
  const auto find_other = [&](const std::vector<TransferPlace>& side,
                              const std::vector<TransferPlace>& others,
                              std::ptrdiff_t shift) {
    for (std::size_t i = 0; i < side.size(); ++i) {
      Transfer& own = transfers[side[i].rank][side[i].number];
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) - shift;
      if (pairs && at >= 0 && at < static_cast<std::ptrdiff_t>(others.size())) {
        const TransferPlace other = others[static_cast<std::size_t>(at)];
        own.partner = other.number;
        own.other = transfers[other.rank][other.number].done
                        ? Presence::kDone
                        : Presence::kPending;
      } else {
        own.other = from_any ? Presence::kUnknown
                             : unmatched(job, own, at < 0, !others.empty());
      }
    }
  };
  find_other(channel.sends, channel.receives, channel.shift);
  find_other(channel.receives, channel.sends, -channel.shift);
}

}  // namespace

std::vector<Channel> pair_transfers(
    const Job& job, std::vector<std::vector<Transfer>>& transfers) {
  std::vector<Channel> channels;
  using Key = std::tuple<GroupId, Rank, Rank>;
  std::map<Key, std::size_t> numbers;
  std::set<std::pair<GroupId, Rank>> receive_from_any;
  for (std::uint32_t r = 0; r < transfers.size(); ++r) {
    const Rank own = job.ranks[r].rank;
    // Mostly a rank has the same few partners.
    std::map<std::tuple<GroupId, Rank, bool>, std::size_t> known;
    for (std::uint32_t i = 0; i < transfers[r].size(); ++i) {
      const Transfer& transfer = transfers[r][i];
      const auto [place, is_new] =
          known.try_emplace({transfer.group, transfer.peer, transfer.send}, 0);
      if (is_new) {
        const Rank source = transfer.send ? own : transfer.peer;
        const Rank destination = transfer.send ? transfer.peer : own;
        place->second = numbers
                            .try_emplace({transfer.group, source, destination},
                                         channels.size())
                            .first->second;
        if (place->second == channels.size())
          channels.push_back({.group = transfer.group,
                              .source = source,
                              .destination = destination,
                              .sends = {},
                              .receives = {}});
        if (!transfer.send && transfer.peer.value < 0)
          receive_from_any.insert({transfer.group, own});
      }
      Channel& channel = channels[place->second];
      std::vector<TransferPlace>& side =
          transfer.send ? channel.sends : channel.receives;
      std::size_t& done =
          transfer.send ? channel.sends_done : channel.receives_done;
      done += transfer.done && done == side.size() ? 1 : 0;
      side.push_back({r, i});
    }
  }
  std::ranges::sort(channels, {}, [](const Channel& channel) {
    return std::tuple(channel.group, channel.source, channel.destination);
  });
  const Census census(job, transfers);
  for (Channel& channel : channels)
    pair(job, census, channel,
         receive_from_any.contains({channel.group, channel.destination}),
         transfers);
  return channels;
}

}  // namespace postflight
