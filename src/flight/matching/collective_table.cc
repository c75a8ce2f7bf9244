#include "flight/matching/collective_table.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include "flight/matching/call_signature.h"
#include "flight/matching/message_table.h"
#include "flight/model/interner.h"

namespace postflight {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

// An entry of some collective of a group.
struct Item {
  std::int64_t sequence;
  std::uint32_t rank;
  std::uint32_t entry;
};

// Orders a group's items by their numbers, those of one number as they came.
// Numbers count up by one, so there are hardly more of them than of items.
std::vector<Item> by_sequence(std::vector<Item> items) {
  const auto [low, high] =
      std::ranges::minmax_element(items, {}, &Item::sequence);
  if (low == items.end())
    return items;
  const std::int64_t first = low->sequence;
  const std::uint64_t range = static_cast<std::uint64_t>(high->sequence) -
                              static_cast<std::uint64_t>(first);
  if (range > 4 * items.size()) {
    std::ranges::stable_sort(items, {}, &Item::sequence);
    return items;
  }
  std::vector<std::uint32_t> starts(range + 2);
  for (const Item& item : items)
    ++starts[static_cast<std::size_t>(item.sequence - first) + 1];
  for (std::size_t i = 1; i < starts.size(); ++i)
    starts[i] += starts[i - 1];
  std::vector<Item> sorted(items.size());
  for (const Item& item : items)
    sorted[starts[static_cast<std::size_t>(item.sequence - first)]++] = item;
  return sorted;
}

class Matcher {
 public:
  explicit Matcher(const Job& job)
      : job_(job),
        operations_(operations_of(job)),
        signatures_(call_signatures(job, operations_)),
        last_(job.groups.size()),
        member_of_(job.ranks.size()) {
    for (std::uint32_t g = 0; g < job.groups.size(); ++g)
      for (const Rank rank : job.groups[g].members)
        if (const RankDump* const dump = job.find(rank))
          member_of_[static_cast<std::size_t>(dump - job.ranks.data())]
              .push_back(g);
  }

  CollectiveTable run() {
    std::vector<std::vector<Item>> items(job_.groups.size());
    for (std::uint32_t r = 0; r < job_.ranks.size(); ++r)
      add_rank(r, items);
    const std::vector<MessageStream> streams =
        pair_messages(job_, operations_, table_.roles);
    auto stream = streams.begin();
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g) {
      add_collectives({g}, by_sequence(std::move(items[g])));
      for (; stream != streams.end() && stream->group == GroupId{g}; ++stream)
        add_messages(*stream);
    }
    return std::move(table_);
  }

 private:
  void add_rank(std::uint32_t r, std::vector<std::vector<Item>>& items) {
    const RankDump& dump = job_.ranks[r];
    table_.roles.push_back(entry_roles(job_, dump, operations_));
    const EntryRoles& roles = table_.roles.back();
    std::vector<std::int64_t> last(dump.groups.size(), kNever);
    for (std::uint32_t i = 0; i < dump.entries.size(); ++i) {
      const std::uint32_t g =
          job_.tables.call(dump.entries.call(i)).group.value;
      const std::int64_t sequence = dump.entries.sequence(i);
      std::int64_t& newest = last[dump.group_place({g})];
      newest = std::max(newest, sequence);
      if (is_collective(roles.roles[i]))
        items[g].push_back({sequence, r, i});
    }
    // A rank that was cut off, or whose ring holds nothing of the group any
    // more, says nothing about what it did not do.
    if (!dump.complete)
      return;
    const bool wrapped = ring_has_wrapped(dump);
    for (const std::uint32_t g : member_of_[r]) {
      const std::size_t place = dump.group_place({g});
      const bool known =
          place < dump.groups.size() && dump.groups[place] == GroupId{g};
      const std::int64_t newest = known ? last[place] : kNever;
      if (newest != kNever || !wrapped)
        last_[g].push_back(newest);
    }
  }

  // Counts the state of the entry that decides for one rank.
  void count_state(std::uint32_t rank, std::uint32_t entry,
                   Collective& collective) const {
    const Entry decisive =
        job_.ranks[rank].entries[table_.roles[rank].decisive(entry)];
    ++collective.joined;
    collective.scheduled += decisive.state == State::kScheduled ? 1 : 0;
    collective.started += decisive.state == State::kStarted ? 1 : 0;
    collective.completed += decisive.state == State::kCompleted ? 1 : 0;
    collective.pending +=
        decisive.state != State::kCompleted && !decisive.retired ? 1 : 0;
  }

  void add_collectives(GroupId id, const std::vector<Item>& items) {
    const Group& group = job_.group(id);
    std::vector<std::int64_t>& last = last_[id.value];
    std::ranges::sort(last);
    const auto expected = static_cast<std::uint32_t>(group.members.size());
    const auto dumps = static_cast<std::uint32_t>(std::ranges::count_if(
        group.members, [&](Rank r) { return job_.find(r) != nullptr; }));
    std::size_t absent = 0;
    for (std::size_t at = 0; at < items.size();) {
      std::size_t end = at;
      while (end < items.size() && items[end].sequence == items[at].sequence)
        ++end;
      while (absent < last.size() && last[absent] < items[at].sequence)
        ++absent;
      Collective collective{.group = id, .sequence = items[at].sequence};
      collective.expected = expected;
      collective.absent = static_cast<std::uint32_t>(absent);
      collective.without_dump = expected - dumps;
      add_matches(std::span(items).subspan(at, end - at), collective);
      at = end;
    }
  }

  void add_matches(std::span<const Item> items, Collective& collective) {
    collective.first_match = table_.matches.size();
    collective.match_count = static_cast<std::uint32_t>(items.size());
    parties_.clear();
    std::vector<std::uint32_t> batch;
    for (std::size_t at = 0; at < items.size();) {
      const std::uint32_t rank = items[at].rank;
      const std::size_t begin = at;
      batch.clear();
      for (; at < items.size() && items[at].rank == rank; ++at) {
        const std::uint32_t entry = items[at].entry;
        table_.matches.push_back(
            {rank, entry, static_cast<std::uint32_t>(at - begin)});
        if (table_.roles[rank].roles[entry] == EntryRole::kCollective)
          batch.push_back(
              signatures_[job_.ranks[rank].entries.call(entry).value]);
      }
      count_state(rank, items[at - 1].entry, collective);
      parties_.push_back({batches_.intern(batch), begin, at - begin});
    }
    vote(items, collective);
    table_.collectives.push_back(collective);
  }

  // The ranks that called what most did agree; of equally many, those with the
  // lowest rank.
  void vote(std::span<const Item> items, Collective& collective) {
    votes_.resize(batches_.size());
    const Party* winner = nullptr;
    for (const Party& party : parties_)
      ++votes_[party.batch];
    for (const Party& party : parties_)
      if (winner == nullptr || votes_[party.batch] > votes_[winner->batch])
        winner = &party;
    collective.majority =
        std::size_t{2} * votes_[winner->batch] > parties_.size();
    collective.call = call_of(items[winner->begin]);
    for (const Party& party : parties_) {
      votes_[party.batch] = 0;
      if (party.batch == winner->batch)
        continue;
      if (collective.difference == Difference::kNone)
        collective.difference = first_difference(items, *winner, party);
      for (std::size_t i = 0; i < party.size; ++i)
        table_.matches[collective.first_match + party.begin + i].agrees = false;
    }
  }

  CallId call_of(const Item& item) const {
    return job_.ranks[item.rank].entries.call(item.entry);
  }

  bool is_end(const Item& item) const {
    return table_.roles[item.rank].roles[item.entry] ==
           EntryRole::kCollectiveEnd;
  }

  struct Party {
    std::uint32_t batch;  // its calls, in batches_
    std::size_t begin;    // of its items
    std::size_t size;
  };

  Difference first_difference(std::span<const Item> items, const Party& winner,
                              const Party& other) const {
    for (std::size_t i = 0; i < std::min(winner.size, other.size); ++i) {
      const Item& first = items[winner.begin + i];
      const Item& second = items[other.begin + i];
      if (is_end(first) || is_end(second))
        break;
      const CallId a = call_of(first);
      const CallId b = call_of(second);
      if (signatures_[a.value] != signatures_[b.value])
        return difference_between(job_, a, b);
    }
    return Difference::kBatch;
  }

  void add_messages(const MessageStream& stream) {
    std::int64_t number = 0;
    bool sent = false;  // whether the sender has an earlier one
    bool received = false;
    for (const Message& message : stream.messages) {
      Collective collective{.group = stream.group,
                            .message = true,
                            .sequence = ++number,
                            .source = stream.source,
                            .destination = stream.destination};
      collective.expected = 2;
      collective.first_match = table_.matches.size();
      add_side(message.send, stream.source, sent, collective);
      add_side(message.receive, stream.destination, received, collective);
      sent = sent || message.send.exists();
      received = received || message.receive.exists();
      if (collective.joined == 2)
        compare(message, collective);
      table_.collectives.push_back(collective);
    }
  }

  // A rank that has an earlier message would have this one too, had it come so
  // far; without one, its ring may have overwritten both.
  void add_side(const EntryPlace& place, Rank rank, bool has_earlier,
                Collective& collective) {
    if (place.exists()) {
      if (collective.match_count++ == 0)
        collective.call = job_.ranks[place.rank].entries.call(place.entry);
      table_.matches.push_back({place.rank, place.entry, 0});
      count_state(place.rank, place.entry, collective);
      return;
    }
    const RankDump* const dump = job_.find(rank);
    if (dump == nullptr)
      collective.without_dump += rank.value >= 0 ? 1 : 0;
    else if (dump->complete && (has_earlier || !ring_has_wrapped(*dump)))
      ++collective.absent;
  }

  void compare(const Message& message, Collective& collective) const {
    const Call& sent = job_.tables.call(
        job_.ranks[message.send.rank].entries.call(message.send.entry));
    const Call& received = job_.tables.call(
        job_.ranks[message.receive.rank].entries.call(message.receive.entry));
    if (sent.inputs != received.outputs)
      collective.difference = Difference::kSizes;
    else if (sent.input_dtypes != received.output_dtypes)
      collective.difference = Difference::kDtypes;
    collective.majority = collective.difference == Difference::kNone;
  }

  const Job& job_;
  const std::vector<Operation> operations_;
  const std::vector<std::uint32_t> signatures_;
  // The last number of each group on the ranks that can tell it.
  std::vector<std::vector<std::int64_t>> last_;
  std::vector<std::vector<std::uint32_t>> member_of_;  // groups of each dump
  Interner<std::uint32_t> batches_;
  std::vector<std::uint32_t> votes_;  // by batch; all 0 between collectives
  std::vector<Party> parties_;
  CollectiveTable table_;
};

}  // namespace

CollectiveTable match_collectives(const Job& job) {
  return Matcher(job).run();
}

}  // namespace postflight
