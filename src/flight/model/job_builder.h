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

// Puts dumps together to a job, one after the other.
class JobBuilder {
 public:
  explicit JobBuilder(const Limits& limits) : limits_(limits) {}

  // `candidates` are the ranks that the file's name may mean.
  void add(Dump dump, std::string file, std::vector<Rank> candidates);
  void skip(SkippedFile file) { job_.skipped.push_back(std::move(file)); }
  void note(Finding finding) { job_.findings.push_back(std::move(finding)); }

  // Decides on ranks, groups and what to say of them.
  Job finish() &&;

 private:
  struct Arrived {
    RankDump dump;
    std::vector<Rank> candidates;
    // By name, those of its pg_config with members.
    std::map<TextId, GroupId> groups;
    // Members of the group without a name that gloo records for the default
    // group.
    TextId unnamed_members;
  };

  // The group with that name and the members that `ranks` lists, made if it is
  // new; none if there are too many already.
  GroupId group_with(TextId name, TextId description, TextId ranks);
  // The ranks that `text`, "[0, 1]" of a pg_config, lists; empty if it is no
  // list. Parsed once: every rank of a job has the same list of all ranks.
  const std::vector<Rank>& members_in(TextId text);
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
  std::map<TextId, std::vector<Rank>> member_lists_;
  std::vector<Arrived> arrived_;
  std::map<std::pair<TextId, std::vector<Rank>>, GroupId> configured_;
  std::map<std::pair<TextId, TextId>, GroupId> written_;  // name and list
  std::map<TextId, std::vector<GroupId>> by_name_;        // the configured ones
  std::map<std::pair<TextId, TextId>, GroupId> learned_;
};

}  // namespace postflight
