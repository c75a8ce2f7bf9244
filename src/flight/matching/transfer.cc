// Transfers have no number that two ranks share. The n-th send from one rank to
// another in a group meets the n-th receive there. Where a ring has wrapped,
// its first transfer is not the first of all; then both sides are aligned at
// what is done. Rejected: aligning by time, since clocks differ by more than a
// transfer takes.
#include "flight/matching/transfer.h"

#include <algorithm>
#include <map>
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

void pair(const Job& job, Channel& channel, bool from_any,
          std::vector<std::vector<Transfer>>& transfers) {
  const RankDump* const source = job.find(channel.source);
  const RankDump* const destination = job.find(channel.destination);
  const bool whole = source != nullptr && destination != nullptr &&
                     !ring_has_wrapped(*source) &&
                     !ring_has_wrapped(*destination);
  const bool pairs =
      !from_any && !channel.sends.empty() && !channel.receives.empty();
  if (pairs && !whole)
    channel.shift = static_cast<std::ptrdiff_t>(channel.sends_done) -
                    static_cast<std::ptrdiff_t>(channel.receives_done);
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
  for (Channel& channel : channels)
    pair(job, channel,
         receive_from_any.contains({channel.group, channel.destination}),
         transfers);
  return channels;
}

}  // namespace postflight
