#include "flight/matching/collective_table.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

namespace postflight {
namespace {

class Tabulation {
 public:
  explicit Tabulation(const Matching& matching)
      : matching_(matching), job_(matching.job()) {}

  CollectiveTable run() {
    auto channel = matching_.channels().begin();
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
      add_group({g});
      for (; channel != matching_.channels().end() &&
             channel->group == GroupId{g};
           ++channel)
        add_channel(*channel);
    }
    return std::move(table_);
  }

 private:
  void add_group(GroupId group) {
    const std::span<const Lane> lanes = matching_.lanes(group);
    Collective like = {.group = group};
    like.expected = static_cast<std::uint32_t>(lanes.size());
    like.incarnation = last_incarnation(lanes);
    std::vector<std::int64_t> lasts;  // of those who can't have gone beyond
    for (const Lane& lane : lanes) {
      like.without_dump += lane.dump == nullptr ? 1 : 0;
      if (lane.tells_absence())
        lasts.push_back(lane.last_enqueued);
    }
    std::ranges::sort(lasts);
    add_earlier(like, lanes);
    std::size_t absent = 0;
    RowWalk rows(lanes);
    while (const Row* const row = rows.next()) {
      while (absent < lasts.size() && lasts[absent] < row->sequence)
        ++absent;
      Collective collective = like;
      collective.absent = static_cast<std::uint32_t>(absent);
      add_row(*row, collective);
    }
  }

  // Who did not take part in an earlier incarnation is not known.
  void add_earlier(const Collective& like, std::span<const Lane> lanes) {
    std::map<std::pair<std::uint32_t, std::int64_t>, Row> rows;
    for (std::uint32_t i = 0; i < lanes.size(); ++i)
      for (const Lane::Earlier& one : lanes[i].earlier) {
        Row& row = rows[{one.incarnation, one.slot.sequence}];
        row.sequence = one.slot.sequence;
        row.members.push_back({i, &one.slot});
      }
    for (const auto& [key, row] : rows) {
      Collective collective = like;
      collective.earlier = true;
      collective.incarnation = key.first;
      add_row(row, collective);
    }
  }

  void add_row(const Row& row, Collective& collective) {
    const std::span<const Lane> lanes = matching_.lanes(collective.group);
    collective.sequence = row.sequence;
    collective.first_match = table_.matches.size();
    std::optional<Disagreement> found =
        matching_.compare(collective.group, row);
    const std::uint32_t most = most_members(row, lanes);
    bool has_call = false;  // of a rank that agrees
    for (const Row::Member& member : row.members) {
      const Lane& lane = lanes[member.lane];
      const auto rank =
          static_cast<std::uint32_t>(lane.dump - job_.ranks.data());
      const bool agrees =
          !found || !std::ranges::binary_search(found->differing, lane.rank);
      // A row speaks of the first operation of a batch.
      if (collective.match_count == 0 || (agrees && !has_call))
        collective.call = lane.dump->entries.call(member.slot->entry);
      has_call |= agrees;
      const Slot& slot = *member.slot;
      const bool closed = matching_.closes_batch(lane, slot.closing);
      const std::span<const std::uint32_t> entries = members_of(lane, slot);
      std::uint32_t position = 0;
      if (slot.partial)
        position =
            most - (closed ? static_cast<std::uint32_t>(entries.size()) : 0);
      for (const std::uint32_t entry : entries)
        table_.matches.push_back({rank, entry, position++, agrees, slot.done});
      if (entries.empty() || entries.back() != slot.closing)
        table_.matches.push_back({rank, slot.closing, most, agrees, slot.done});
      collective.match_count = static_cast<std::uint32_t>(
          table_.matches.size() - collective.first_match);
      count(lane.dump->entries, member.slot->closing, member.slot->done,
            collective);
    }
    if (found)
      note(*std::move(found), collective);
    table_.collectives.push_back(collective);
  }

  // The members of a slot; none of a batch whose members were all overwritten.
  std::span<const std::uint32_t> members_of(const Lane& lane,
                                            const Slot& slot) const {
    if (slot.partial && slot.entry == slot.closing)
      return {};
    return lane.members(slot);
  }

  // The place that follows the last operation of a row's longest batch.
  std::uint32_t most_members(const Row& row,
                             std::span<const Lane> lanes) const {
    std::size_t most = 0;
    for (const Row::Member& member : row.members)
      most =
          std::max(most, members_of(lanes[member.lane], *member.slot).size());
    return static_cast<std::uint32_t>(most);
  }

  static void count(const Entries& entries, std::uint32_t decisive, bool done,
                    Collective& collective) {
    const State state = entries.state(decisive);
    ++collective.joined;
    collective.scheduled += state == State::kScheduled ? 1 : 0;
    collective.started += state == State::kStarted ? 1 : 0;
    collective.completed += state == State::kCompleted ? 1 : 0;
    collective.pending += done ? 0 : 1;
  }

  void note(Disagreement found, Collective& collective) {
    collective.difference = found.difference;
    collective.blocks = found.blocks;
    collective.majority =
        !found.differing.empty() &&
        2 * (collective.joined - found.differing.size()) > collective.joined;
    collective.disagreement =
        static_cast<std::uint32_t>(table_.disagreements.size());
    table_.disagreements.push_back(std::move(found));
  }

  void add_channel(const Channel& channel) {
    const auto sends = static_cast<std::ptrdiff_t>(channel.sends.size());
    const auto receives = static_cast<std::ptrdiff_t>(channel.receives.size());
    std::int64_t number = 0;
    for (std::ptrdiff_t i = std::min<std::ptrdiff_t>(0, channel.shift);
         i < std::max(sends, receives + channel.shift); ++i) {
      const std::ptrdiff_t j = i - channel.shift;
      const TransferPlace* const send =
          i >= 0 && i < sends ? &channel.sends[static_cast<std::size_t>(i)]
                              : nullptr;
      const TransferPlace* const receive =
          j >= 0 && j < receives
              ? &channel.receives[static_cast<std::size_t>(j)]
              : nullptr;
      // Sides that are not paired stand in rows of their own. Between two that
      // don't overlap there may be a gap.
      if (send != nullptr && receive != nullptr &&
          matching_.transfer(*send).partner == Transfer::kNone) {
        add_message(channel, ++number, send, nullptr);
        add_message(channel, ++number, nullptr, receive);
      } else if (send != nullptr || receive != nullptr) {
        add_message(channel, ++number, send, receive);
      }
    }
  }

  void add_message(const Channel& channel, std::int64_t number,
                   const TransferPlace* send, const TransferPlace* receive) {
    Collective collective{.group = channel.group,
                          .message = true,
                          .sequence = number,
                          .source = channel.source,
                          .destination = channel.destination};
    collective.expected = 2;
    collective.first_match = table_.matches.size();
    for (const TransferPlace* const place : {send, receive}) {
      if (place == nullptr)
        continue;
      const Transfer& transfer = matching_.transfer(*place);
      const Entries& entries = job_.ranks[place->rank].entries;
      if (collective.match_count++ == 0)
        collective.call = entries.call(transfer.entry);
      table_.matches.push_back(
          {place->rank, transfer.entry, 0, true, transfer.done});
      count(entries, transfer.closing, transfer.done, collective);
      if (send == nullptr || receive == nullptr) {
        collective.absent = transfer.other == Presence::kAbsent ? 1 : 0;
        collective.without_dump = transfer.other == Presence::kNoDump ? 1 : 0;
      }
    }
    if (send != nullptr && receive != nullptr) {
      const auto passed = [&](TransferPlace place) -> Passed {
        const RankDump& dump = job_.ranks[place.rank];
        return {dump.rank, dump.entries.call(matching_.transfer(place).entry)};
      };
      if (std::optional<Disagreement> found =
              matching_.calls().compare(passed(*send), passed(*receive)))
        note(*std::move(found), collective);
    }
    table_.collectives.push_back(collective);
  }

  const Matching& matching_;
  const Job& job_;
  CollectiveTable table_;
};

}  // namespace

CollectiveTable tabulate(const Matching& matching) {
  return Tabulation(matching).run();
}

}  // namespace postflight
