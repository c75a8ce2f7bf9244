// A log says of a rank what it gave up on, and how far it came: "last enqueued
// work: 6, last completed work: 4". That is a dump of the last few entries, so
// the matching and the rules of dumps apply to it. What differs is what must
// not be concluded:
//
//   - Members of a group are listed nowhere. The group of all ranks has those
//     that the logs know of; another group those that speak of it. Where the
//     ranks in the group and those in the job show a stride, the gaps are
//     filled. A group whose size no line tells is never called complete.
//   - Numbers of point-to-point operations and of collectives are mixed in a
//     group that has both, and peers are not told. There, only what a
//     collective timed out in is used; who waits in a transfer, waits for
//     somebody unknown.
//   - A rank that joined all but the operation that others wait in has just the
//     number before. Another number is that of something else.
#include "joblog/reported_job.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/ascii.h"
#include "joblog/logged_group.h"
#include "joblog/reach.h"

namespace postflight {
namespace {

// At most so many sequence numbers of one group are kept.
constexpr std::size_t kMostNumbers = 64;
constexpr std::int64_t kMostRanks = 1 << 20;
// Lines older than this before the last one are of an earlier attempt.
constexpr std::int64_t kOneEnd = std::int64_t{30} * 60 * kNanosecondsPerSecond;

class Maker {
 public:
  explicit Maker(const JobLog& log) : log_(log) {}

  ReportedJob make() && {
    find_world();
    sort_into_groups();
    for (LoggedGroup& group : groups_)
      group.settle(log_.progress);
    complete_groups();
    split_off_transfers();
    for (std::uint32_t g = 0; g < groups_.size(); ++g)
      add_group(g);
    add_ranks();
    return std::move(made_);
  }

 private:
  void find_world() {
    std::set<Rank> ranks(log_.speakers.begin(), log_.speakers.end());
    std::set<Rank> guessed;
    for (const LogProgress& said : log_.progress) {
      if (said.rank)
        ranks.insert(*said.rank);
      if (said.time)
        newest_[said.time->has_year] =
            std::max(newest_[said.time->has_year], said.time->nanoseconds);
    }
    for (const LogEvent& event : log_.events)
      ranks.insert(event.ranks.begin(), event.ranks.end());
    for (const LogClaim& claim : log_.claims)
      ranks.insert(claim.places.begin(), claim.places.end());
    // Only where no line tells a rank in the job.
    if (ranks.empty() ||
        std::ranges::none_of(log_.progress, [](const LogProgress& said) {
          return said.rank.has_value();
        }))
      for (const LogProgress& said : log_.progress)
        if (said.of_all() && said.place) {
          ranks.insert(*said.place);
          made_.guessed = true;
        }
    if (ranks.empty() && !log_.world_size)
      return;
    const std::int64_t last =
        ranks.empty() ? -1 : std::int64_t{ranks.rbegin()->value};
    std::int64_t size = last + 1;
    const auto known = static_cast<std::int64_t>(ranks.size());
    if (size > 4 * known + 64 || size > kMostRanks)
      size = 0;  // a stray number
    if (log_.world_size)
      size = std::max(size, *log_.world_size);
    for (std::int64_t rank = 0; rank < size; ++rank)
      ranks.insert({static_cast<std::int32_t>(rank)});
    world_.assign(ranks.begin(), ranks.end());
    const auto count = static_cast<std::int64_t>(world_.size());
    world_whole_ = log_.world_size ? *log_.world_size == count
                                   : count > 1 && count % 2 == 0 &&
                                         count == size && known == count;
  }

  bool is_stale(const LogProgress& said) const {
    return said.time && elapsed(said.time->nanoseconds,
                                newest_[said.time->has_year]) > kOneEnd;
  }

  std::size_t group_named(const std::string& name,
                          const std::string& description) {
    const auto [found, is_new] =
        by_name_.try_emplace({name, description}, groups_.size());
    if (is_new)
      groups_.push_back({.name = name, .description = description});
    return found->second;
  }

  // Whether lines that name no group can be of that of all ranks: in no other
  // have all ranks the same number in the group and in the job.
  bool unnamed_are_of_all() const {
    for (const LogProgress& said : log_.progress)
      if ((said.named && !said.fingerprint) ||
          (!said.named && said.rank && said.place != said.rank))
        return false;
    return true;
  }

  // Lines that name no group, of operations that one in the second half of its
  // group waits in: that group has more than half of all ranks, and no other
  // group has. What identifies an operation is its number, type and sizes.
  using Named = std::tuple<std::int64_t, std::string_view, std::int64_t>;
  static Named name_of(const LogProgress::Operation& operation) {
    return {operation.sequence, operation.type, operation.inputs};
  }
  bool is_in_second_half(const LogProgress& said) const {
    return said.rank && said.place == said.rank &&
           std::int64_t{said.rank->value} * 2 >=
               static_cast<std::int64_t>(world_.size());
  }
  std::set<Named> operations_of_all() const {
    std::set<Named> found;
    for (const LogProgress& said : log_.progress)
      if (!said.named && said.pending && is_in_second_half(said))
        found.insert(name_of(*said.pending));
    return found;
  }

  // Whether what was compared was compared in the group of all ranks, and not
  // in one whose members have other ranks in it.
  bool compared_are_of_all() const {
    return std::ranges::none_of(log_.progress, [](const LogProgress& said) {
      return said.fingerprint && said.rank && said.place != said.rank;
    });
  }

  // What a writer said of itself is known better than what others said of it.
  bool is_needless(const LogProgress& said, bool of_all) const {
    if (!said.fingerprint || said.group == "fingerprint")
      return false;
    return !of_all ||
           std::ranges::any_of(log_.progress, [&](const LogProgress& other) {
             return other.group == "fingerprint" && other.place == said.place;
           });
  }

  void sort_into_groups() {
    group_named("0", "default_pg");
    const bool unnamed = unnamed_are_of_all();
    const bool compared = compared_are_of_all();
    const std::set<Named> of_all = operations_of_all();
    std::set<Rank> told;
    for (std::size_t i = 0; i < log_.progress.size(); ++i) {
      const LogProgress& said = log_.progress[i];
      std::optional<Rank> rank = said.rank;
      if (!rank && made_.guessed && said.of_all())
        rank = said.place;
      if (!rank || is_stale(said) || is_needless(said, compared))
        continue;
      if (said.fingerprint && !compared) {
        LoggedGroup& group =
            groups_[group_named("compared", "a group that is not named")];
        group.add_place(*said.place, *rank);
        if (const std::optional<Reach> reach = reach_of(said))
          group.members.push_back({*rank, i, *reach});
        continue;
      }
      // "[Rank 1]" by another rank is of a group without a name.
      const bool of_world =
          said.named || unnamed || is_in_second_half(said) ||
          (said.pending && of_all.contains(name_of(*said.pending)));
      const bool foreign = said.of_all() && (said.place != rank || !of_world);
      if (!said.named && !foreign)
        told.insert(*rank);
      const std::size_t place = foreign ? add_alone("", "unnamed")
                                : said.of_all()
                                    ? 0
                                    : group_named(said.group, said.description);
      LoggedGroup& group = groups_[place];
      if (said.members && !foreign)
        group.size = std::max(group.size.value_or(0), *said.members);
      if (said.place && !foreign)
        group.add_place(*said.place, *rank);
      if (const std::optional<Reach> reach = reach_of(said))
        group.members.push_back({*rank, i, *reach});
    }
    groups_[0].doubtful = !told.empty() && told.size() != world_.size();
  }

  std::size_t add_alone(std::string name, std::string description) {
    groups_.push_back({.name = std::move(name),
                       .description = std::move(description),
                       .alone = true});
    return groups_.size() - 1;
  }

  void complete_groups() {
    // Meshes have many groups of one kind, alike in size and stride.
    std::map<std::string, std::set<std::int64_t>> sizes;
    std::map<std::string, std::set<std::int64_t>> strides;
    for (const LoggedGroup& group : groups_) {
      if (group.alone || group.crossed || group.description.empty())
        continue;
      if (group.size)
        sizes[group.description].insert(*group.size);
      if (const std::optional<GroupLayout> layout = group.layout())
        strides[group.description].insert(layout->stride);
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      LoggedGroup& group = groups_[g];
      if (g == 0) {
        group.ranks = world_;
        group.whole = world_whole_;
        continue;
      }
      std::set<Rank> ranks;
      for (const LoggedMember& one : group.members)
        ranks.insert(one.rank);
      for (const auto& [place, rank] : group.ranks_at)
        ranks.insert(rank);
      if (!group.alone && !group.crossed) {
        if (const auto& known = sizes[group.description];
            !group.size && known.size() == 1)
          group.size = *known.begin();
        add_inferred(group, strides[group.description], ranks);
      }
      group.ranks.assign(ranks.begin(), ranks.end());
    }
  }

  void add_inferred(LoggedGroup& group, const std::set<std::int64_t>& strides,
                    std::set<Rank>& ranks) const {
    std::optional<GroupLayout> layout = group.layout();
    if (!layout && group.ranks_at.size() == 1 && strides.size() == 1) {
      const auto [place, rank] = *group.ranks_at.begin();
      layout = GroupLayout{rank.value - *strides.begin() * place.value,
                           *strides.begin()};
    }
    if (layout && group.ranks_at.size() >= 1) {
      std::int64_t size =
          std::int64_t{group.ranks_at.rbegin()->first.value} + 1;
      size = std::max(size, group.size.value_or(0));
      if (size <= static_cast<std::int64_t>(world_.size()))
        for (std::int64_t place = 0; place < size; ++place) {
          const std::int64_t rank = layout->first + layout->stride * place;
          if (rank >= 0 && rank <= kMostRanks &&
              std::ranges::binary_search(world_,
                                         Rank{static_cast<std::int32_t>(rank)}))
            ranks.insert({static_cast<std::int32_t>(rank)});
        }
    }
    group.whole =
        group.size && static_cast<std::int64_t>(ranks.size()) == *group.size;
  }

  // Who waits in a transfer waits for somebody that no line names.
  void split_off_transfers() {
    const std::size_t count = groups_.size();
    for (std::size_t g = 0; g < count; ++g) {
      if (groups_[g].alone)
        continue;
      std::vector<LoggedMember> members = std::move(groups_[g].members);
      std::vector<LoggedMember> kept;
      for (const LoggedMember& one : members) {
        // Of groups of one name it is not known who is in which.
        if (!one.reach.transfer && !groups_[g].crossed) {
          kept.push_back(one);
          continue;
        }
        if (!one.reach.pending)
          continue;
        const std::size_t own =
            add_alone(groups_[g].name, groups_[g].description);
        groups_[own].members = {one};
        groups_[own].ranks = {one.rank};
      }
      groups_[g].members = std::move(kept);
    }
    for (LoggedGroup& group : groups_)
      if (group.alone && group.ranks.empty() && !group.members.empty())
        group.ranks = {group.members[0].rank};
  }

  // Sizes of operations whose ranks pass the same ones by rule.
  void add_sizes(const LogProgress& said, std::size_t members, Call& call) {
    const LogProgress::Operation& operation = *said.pending;
    const std::string_view type = operation.type;
    const bool same =
        type == "ALLREDUCE" || type == "BROADCAST" || type == "REDUCE";
    const bool gathers = type == "_ALLGATHER_BASE" || type == "ALLGATHER";
    const bool scatters = type == "_REDUCE_SCATTER_BASE";
    std::int64_t in = operation.inputs;
    std::int64_t out = operation.outputs;
    if (in < 0 || (!same && !gathers && !scatters) ||
        (type == "ALLGATHER" && !said.fingerprint))
      return;
    const auto parts = static_cast<std::int64_t>(members);
    if (said.fingerprint && gathers && __builtin_mul_overflow(in, parts, &out))
      return;
    if (said.fingerprint && scatters) {
      if (in % parts != 0)
        return;
      out = in / parts;
    }
    if (out < 0)
      out = in;
    Tables& tables = made_.job.tables;
    const std::array<std::int64_t, 2> inputs = {1, in};
    const std::array<std::int64_t, 2> outputs = {1, out};
    call.inputs = tables.add_sizes(inputs);
    call.outputs = tables.add_sizes(outputs);
    if (operation.dtype.empty())
      return;
    const std::array<TextId, 1> dtype = {tables.add_text(operation.dtype)};
    call.input_dtypes = call.output_dtypes = tables.add_dtypes(dtype);
  }

  CallId call_of(const LoggedMember& member, std::uint32_t g) {
    Tables& tables = made_.job.tables;
    const LoggedGroup& group = groups_[g];
    const LogProgress& said = log_.progress[member.sizes_from];
    Call call;
    call.group = {g};
    call.group_name = tables.add_text(group.name);
    call.group_description = tables.add_text(group.description);
    call.local_group = g;
    // A collective as far as the matching is concerned.
    call.name = tables.add_text(
        !said.pending ? "nccl:collective" : recorded_name(said.pending->type));
    if (said.pending) {
      call.timeout_ms = said.pending->timeout_ms;
      if (!member.reach.transfer)
        add_sizes(said, group.ranks.size(), call);
    }
    if (member.reach.transfer)
      call.name = tables.add_text(
          fmt::format("nccl:{}_transfer", lowered(said.pending->type)));
    return tables.add_call(call);
  }

  void add_group(std::uint32_t g) {
    LoggedGroup& group = groups_[g];
    Tables& tables = made_.job.tables;
    made_.job.groups.push_back({tables.add_text(group.name),
                                tables.add_text(group.description), group.ranks,
                                group.whole || g == 0});
    made_.whole.push_back(group.whole);
    made_.doubtful.push_back(group.doubtful || group.crossed);
    std::set<std::int64_t> numbers;
    std::map<std::int64_t, std::set<CallId>> calls;
    group.lend_sizes(log_.progress);
    for (const LoggedMember& one : group.members) {
      if (one.reach.dropped)
        continue;
      if (one.reach.pending) {
        numbers.insert(*one.reach.pending);
        if (log_.progress[one.source].pending)
          calls[*one.reach.pending].insert(call_of(one, g));
      }
      numbers.insert(one.reach.enqueued);
      if (one.reach.done > 0)
        numbers.insert(one.reach.done);
    }
    while (numbers.size() > kMostNumbers)
      numbers.erase(std::prev(numbers.end()));
    for (const LoggedMember& one : group.members)
      if (!one.reach.dropped)
        add_member(g, one, numbers, calls);
  }

  void add_member(std::uint32_t g, const LoggedMember& member,
                  const std::set<std::int64_t>& numbers,
                  const std::map<std::int64_t, std::set<CallId>>& calls) {
    const LogProgress& said = log_.progress[member.source];
    // What others called under the number of which this one's call is unknown
    // can't be added to either side.
    const auto differ = [&](std::int64_t number) {
      const auto found = calls.find(number);
      return found != calls.end() && found->second.size() > 1;
    };
    if (member.reach.pending && !said.pending && differ(*member.reach.pending))
      return;
    Dumped& dumped = dumped_[member.rank];
    dumped.file = said.file;
    made_.sources[{member.rank, GroupId{g}}] = member.source;
    if (!said.host.empty())
      made_.job.hosts[member.rank] = said.host;
    for (const std::int64_t number : numbers) {
      // Number 0 is that of a rank that has enqueued nothing; a rank whose
      // state is unknown has none.
      if (number > member.reach.enqueued ||
          (number < 1 && member.reach.enqueued > 0))
        continue;
      const bool own = number == member.reach.pending;
      if (!own && differ(number))
        continue;
      Entry entry;
      const auto known = calls.find(number);
      entry.call = own && said.pending    ? call_of(member, g)
                   : known != calls.end() ? *known->second.begin()
                                          : unknown_call(g);
      entry.sequence = number;
      entry.operation_id = number;
      // There were others before.
      entry.record_id = 1 + static_cast<std::int64_t>(dumped.entries.size());
      entry.state = number <= member.reach.done ? State::kCompleted
                    : is_set(said.started) && *said.started >= number
                        ? State::kStarted
                        : State::kScheduled;
      entry.retired = number <= member.reach.done ||
                      (own && (said.timed_out || said.fingerprint));
      dumped.entries.push_back(entry);
    }
    if (member.reach.pending)
      made_.waiting.push_back(member.rank);
  }

  CallId unknown_call(std::uint32_t g) {
    Tables& tables = made_.job.tables;
    Call call;
    call.group = {g};
    call.group_name = tables.add_text(groups_[g].name);
    call.group_description = tables.add_text(groups_[g].description);
    call.local_group = g;
    call.name = tables.add_text("nccl:collective");
    return tables.add_call(call);
  }

  void add_ranks() {
    for (std::uint32_t g = 0; g < groups_.size(); ++g)
      for (const Rank rank : groups_[g].ranks)
        if (const auto found = dumped_.find(rank); found != dumped_.end())
          found->second.groups.push_back({g});
    for (auto& [rank, dumped] : dumped_) {
      RankDump dump;
      dump.rank = rank;
      dump.file = dumped.file;
      dump.reported = true;
      dump.groups = std::move(dumped.groups);
      std::ranges::sort(dump.groups);
      dump.groups.erase(std::unique(dump.groups.begin(), dump.groups.end()),
                        dump.groups.end());
      for (const Entry& entry : dumped.entries)
        dump.entries.push_back(entry);
      made_.job.ranks.push_back(std::move(dump));
    }
    std::ranges::sort(made_.waiting);
    made_.waiting.erase(std::unique(made_.waiting.begin(), made_.waiting.end()),
                        made_.waiting.end());
  }

  struct Dumped {
    std::string file;
    std::vector<GroupId> groups;
    std::vector<Entry> entries;
  };

  const JobLog& log_;
  ReportedJob made_;
  std::vector<Rank> world_;
  bool world_whole_ = false;
  std::array<std::int64_t, 2> newest_ = {};  // with a year, and without
  std::vector<LoggedGroup> groups_;
  std::map<std::pair<std::string, std::string>, std::size_t> by_name_;
  std::map<Rank, Dumped> dumped_;
};

}  // namespace

ReportedJob make_reported_job(const JobLog& log) {
  return Maker(log).make();
}

}  // namespace postflight
