#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "flight/model/job.h"
#include "flight/model/rank_names.h"

namespace postflight {

// Joins dumps into a job, one after the other. The MemberLists that they were
// read with have to outlive it.
class JobBuilder {
 public:
  explicit JobBuilder(const Limits& limits) : limits_(limits) {}

  // `candidates` are the possible ranks by the file's name, likeliest first.
  void add(Dump dump, std::string file, std::vector<Rank> candidates);
  void skip(SkippedFile file) { job_.skipped.push_back(std::move(file)); }
  void note(Finding finding) { job_.findings.push_back(std::move(finding)); }

  // Determines ranks, hosts and groups, and adds findings on them.
  Job finish() &&;

 private:
  struct Arrived {
    RankDump dump;
    std::vector<Rank> candidates;
    // The groups of its pg_config that have members, by name.
    std::map<TextId, GroupId> groups;
    // The members of gloo's default group, which its pg_config has without a
    // name.
    const MemberList* unnamed_members = nullptr;
  };

  // The group with that name and these members, created if it is new;
  // kUnresolved if the groups have too many members.
  GroupId group_with(TextId name, TextId description, const MemberList& list);
  void note_damage(const Dump& dump, const std::string& file);

  void assign_ranks();
  std::optional<Rank> rank_of(const Arrived& arrived) const;
  void drop_duplicates();
  void find_hosts();
  void resolve_groups();
  GroupId resolve(Arrived& arrived, const Call& call);
  void list_groups_of_ranks();
  void note_disagreements();

  const Limits limits_;
  Job job_;
  std::uint64_t member_count_ = 0;  // of all groups
  bool too_many_members_ = false;
  std::vector<Arrived> arrived_;
  std::map<std::pair<TextId, std::vector<Rank>>, GroupId> configured_;
  // By name and list.
  std::map<std::pair<TextId, const MemberList*>, GroupId> written_;
  std::map<TextId, std::vector<GroupId>> by_name_;  // the configured ones
  std::map<std::pair<TextId, TextId>, GroupId> learned_;
};

}  // namespace postflight
