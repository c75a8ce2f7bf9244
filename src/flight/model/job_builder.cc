// The groups of a job, and the group of an entry, are known only when all dumps
// have been read. NCCL's pg_config lists a rank's groups with their members,
// but only those whose communicator exists; gloo's has a single group without a
// name. So an entry's group is looked up in the pg_config of its own rank, then
// in those of other ranks for a group that contains this rank. A group that is
// in no pg_config has the ranks that use it as members.
#include "flight/model/job_builder.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "flight/model/rank_set.h"

namespace postflight {
namespace {

constexpr GroupId kUnresolved = {~std::uint32_t{0}};

std::int64_t newest(const Entries& entries) {
  std::int64_t time = 0;
  for (std::size_t i = 0; i < entries.size(); ++i)
    time = std::max(time, entries.created(i));
  return time;
}

}  // namespace

void JobBuilder::add(Dump dump, std::string file,
                     std::vector<Rank> candidates) {
  note_damage(dump, file);
  Arrived arrived;
  arrived.candidates = std::move(candidates);

  // By the id of the group's name in the dump's own tables.
  std::map<TextId, GroupId> groups;
  const auto group_of = [&](TextId local_name) {
    const auto found = groups.find(local_name);
    return found == groups.end() ? kUnresolved : found->second;
  };
  for (const GroupConfig& config : dump.groups) {
    if (config.members == nullptr || config.members->ranks.empty())
      continue;
    if (config.name == TextId{}) {
      arrived.unnamed_members = config.members;
      continue;
    }
    const TextId group_name =
        job_.tables.add_text(dump.tables.text(config.name));
    const GroupId group = group_with(
        group_name, job_.tables.add_text(dump.tables.text(config.description)),
        *config.members);
    if (group == kUnresolved)
      continue;
    groups[config.name] = group;
    arrived.groups[group_name] = group;
  }

  const Tables::Moved moved = job_.tables.add_all(dump.tables, group_of);
  dump.entries.change_calls([&](CallId id) { return moved.calls[id.value]; });
  dump.entries.change_stacks(
      [&](StackId id) { return moved.stacks[id.value]; });
  dump.entries.change_threads(
      [&](ThreadId id) { return moved.threads[id.value]; });
  const auto move_extra = [&](Extra extra) {
    return Extra{moved.texts[extra.key.value], moved.texts[extra.value.value]};
  };
  std::ranges::transform(dump.extras, dump.extras.begin(), move_extra);
  for (EntryExtra& extra : dump.entry_extras)
    extra.extra = move_extra(extra.extra);

  arrived.dump = {.rank = {},
                  .file = std::move(file),
                  .host = {},
                  .version = moved.texts[dump.version.value],
                  .library = moved.texts[dump.library.value],
                  .json = dump.json,
                  .complete = !dump.damage,
                  .groups = {},
                  .statuses = std::move(dump.statuses),
                  .extras = std::move(dump.extras),
                  .entries = std::move(dump.entries),
                  .entry_extras = std::move(dump.entry_extras)};
  arrived_.push_back(std::move(arrived));
}

GroupId JobBuilder::group_with(TextId name, TextId description,
                               const MemberList& list) {
  const auto next = static_cast<std::uint32_t>(job_.groups.size());
  // The same members are rarely written in two ways.
  const auto [written, is_new_text] =
      written_.try_emplace({name, &list}, GroupId{next});
  if (is_new_text) {
    const std::vector<Rank>& members = list.ranks;
    const auto [found, is_new] =
        configured_.try_emplace({name, members}, GroupId{next});
    written->second = found->second;
    if (is_new && members.size() > limits_.max_group_members - member_count_) {
      if (!std::exchange(too_many_members_, true))
        note({"too_many_members", Severity::kWarning,
              fmt::format("the groups have more than {} members in total "
                          "(max_group_members); the members of group {} and of "
                          "further groups are inferred from their entries",
                          limits_.max_group_members, job_.text(name)),
              ""});
      configured_.erase(found);
      written->second = kUnresolved;
      return kUnresolved;
    }
    if (is_new) {
      member_count_ += members.size();
      job_.groups.push_back({name, description, members, true});
      by_name_[name].push_back({next});
      return found->second;
    }
  }
  if (written->second == kUnresolved)
    return kUnresolved;
  Group& group = job_.groups[written->second.value];
  if (group.description == TextId{})
    group.description = description;
  else if (description != TextId{} && description != group.description)
    note({"group_disagreement", Severity::kWarning,
          fmt::format("ranks describe group {} differently: {} and {}",
                      job_.text(name), job_.text(group.description),
                      job_.text(description)),
          ""});
  return written->second;
}

void JobBuilder::note_damage(const Dump& dump, const std::string& file) {
  if (dump.damage)
    note(
        {"damaged_dump", Severity::kError,
         fmt::format("the dump is truncated or damaged ({}); only its first {} "
                     "entries are used",
                     dump.damage->message(), dump.entries.size()),
         file});
  if (dump.broken_entries > 0)
    note({"broken_entries", Severity::kWarning,
          fmt::format("{} entries are not dictionaries and were skipped",
                      dump.broken_entries),
          file});
  if (!dump.imports.empty())
    note({"code_in_dump", Severity::kError,
          fmt::format("Python would import {} to load this file; no recorder "
                      "writes that, so do not load it in Python",
                      dump.imports),
          file});
}

Job JobBuilder::finish() && {
  assign_ranks();
  drop_duplicates();
  find_hosts();
  resolve_groups();
  list_groups_of_ranks();
  note_disagreements();
  for (Arrived& arrived : arrived_)
    job_.ranks.push_back(std::move(arrived.dump));
  return std::move(job_);
}

// The first candidate that is in all groups of the dump, as a recorder lists
// only groups of its own rank.
std::optional<Rank> JobBuilder::rank_of(const Arrived& arrived) const {
  for (const Rank rank : arrived.candidates)
    if (std::ranges::all_of(arrived.groups, [&](const auto& group) {
          return job_.groups[group.second.value].has(rank);
        }))
      return rank;
  if (!arrived.candidates.empty())
    return arrived.candidates.front();
  // If the name has no number, the groups may have only one rank in common.
  std::vector<Rank> common;
  for (const auto& [name, id] : arrived.groups) {
    const std::vector<Rank>& members = job_.groups[id.value].members;
    if (common.empty())
      common = members;
    std::erase_if(common, [&](Rank rank) {
      return !std::ranges::binary_search(members, rank);
    });
  }
  return common.size() == 1 ? std::optional(common[0]) : std::nullopt;
}

void JobBuilder::assign_ranks() {
  for (Arrived& arrived : arrived_) {
    const std::optional<Rank> rank = rank_of(arrived);
    arrived.dump.rank = rank.value_or(Rank{-1});
    if (!rank) {
      skip({arrived.dump.file,
            "no rank in the file name: use --prefix or --rank-pattern", false,
            -1});
      continue;
    }
    for (const auto& [name, id] : arrived.groups)
      if (!job_.groups[id.value].has(*rank)) {
        note({"rank_not_in_group", Severity::kWarning,
              fmt::format("the file name says rank {}, but the dump lists "
                          "group {} with ranks {}; is it from another job?",
                          rank->value, job_.text(name),
                          rank_set_text(job_.groups[id.value].members)),
              arrived.dump.file});
        break;
      }
  }
  std::erase_if(arrived_, [](const Arrived& arrived) {
    return arrived.dump.rank.value < 0;
  });
}

void JobBuilder::drop_duplicates() {
  std::ranges::stable_sort(arrived_, [](const Arrived& a, const Arrived& b) {
    if (a.dump.rank != b.dump.rank)
      return a.dump.rank < b.dump.rank;
    const std::int64_t first = newest(a.dump.entries);
    const std::int64_t second = newest(b.dump.entries);
    return first != second ? first > second : a.dump.file < b.dump.file;
  });
  std::vector<Arrived> kept;
  for (Arrived& arrived : arrived_) {
    if (kept.empty() || kept.back().dump.rank != arrived.dump.rank) {
      kept.push_back(std::move(arrived));
      continue;
    }
    note({"duplicate_rank", Severity::kWarning,
          fmt::format("two files are dumps of rank {}; {} is used, as it has "
                      "the newest entry",
                      arrived.dump.rank.value, kept.back().dump.file),
          arrived.dump.file});
  }
  arrived_ = std::move(kept);
}

void JobBuilder::find_hosts() {
  std::vector<NamedDump> dumps;
  for (const Arrived& arrived : arrived_)
    dumps.push_back({arrived.dump.file, arrived.dump.rank});
  std::vector<std::string> hosts = read_hosts(dumps);
  for (std::size_t i = 0; i < arrived_.size(); ++i)
    arrived_[i].dump.host = std::move(hosts[i]);
}

void JobBuilder::resolve_groups() {
  for (Arrived& arrived : arrived_) {
    std::map<CallId, CallId> changed;
    arrived.dump.entries.change_calls([&](CallId id) {
      if (job_.tables.call(id).group != kUnresolved)
        return id;
      const auto [found, is_new] = changed.try_emplace(id, id);
      if (is_new) {
        Call call = job_.tables.call(id);
        call.group = resolve(arrived, call);
        found->second = job_.tables.add_call(call);
      }
      return found->second;
    });
  }
}

GroupId JobBuilder::resolve(Arrived& arrived, const Call& call) {
  const Rank rank = arrived.dump.rank;
  if (const auto known = by_name_.find(call.group_name);
      known != by_name_.end())
    for (const GroupId id : known->second)
      if (job_.group(id).has(rank))
        return id;
  const auto next = static_cast<std::uint32_t>(job_.groups.size());
  const auto [found, is_new] = learned_.try_emplace(
      {call.group_name, call.group_description}, GroupId{next});
  if (is_new)
    job_.groups.push_back({call.group_name, call.group_description, {}, false});
  Group& group = job_.groups[found->second.value];
  const auto insert = [&](Rank member) {
    const auto place = std::ranges::lower_bound(group.members, member);
    if (place == group.members.end() || *place != member)
      group.members.insert(place, member);
  };
  insert(rank);
  if (arrived.unnamed_members != nullptr &&
      job_.text(call.group_description) == "default_pg")
    for (const Rank member : arrived.unnamed_members->ranks)
      insert(member);
  return found->second;
}

void JobBuilder::list_groups_of_ranks() {
  // The rank whose list each group was added to last.
  std::vector<const Arrived*> listed(job_.groups.size());
  for (Arrived& arrived : arrived_) {
    std::vector<GroupId>& groups = arrived.dump.groups;
    const auto list = [&](GroupId group) {
      if (std::exchange(listed[group.value], &arrived) != &arrived)
        groups.push_back(group);
    };
    for (const auto& [name, id] : arrived.groups)
      list(id);
    for (std::size_t i = 0; i < arrived.dump.entries.size(); ++i)
      list(job_.tables.call(arrived.dump.entries.call(i)).group);
    std::ranges::sort(groups);
  }
}

// Two groups with the same name share a rank only if dumps list different
// members for it.
void JobBuilder::note_disagreements() {
  for (const auto& [name, groups] : by_name_) {
    std::map<Rank, GroupId> seen;
    for (const GroupId id : groups)
      for (const Rank member : job_.group(id).members) {
        const auto [found, is_new] = seen.try_emplace(member, id);
        if (is_new)
          continue;
        note({"group_disagreement", Severity::kWarning,
              fmt::format("dumps list different ranks for group {}: {} and {}; "
                          "are they of two jobs?",
                          job_.text(name),
                          rank_set_text(job_.group(found->second).members),
                          rank_set_text(job_.group(id).members)),
              ""});
        break;
      }
  }
}

}  // namespace postflight
