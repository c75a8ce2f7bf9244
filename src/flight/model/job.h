#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/finding.h"
#include "flight/model/dump.h"
#include "flight/model/entry.h"
#include "flight/model/operation.h"
#include "flight/model/tables.h"

namespace postflight {

// A process group: a name and a set of ranks. Groups with the same name but
// different ranks are different groups.
struct Group {
  TextId name;
  TextId description;
  std::vector<Rank> members;  // sorted
  // Whether a pg_config lists the members. If not, they are the ranks that have
  // entries of the group, and there may be more.
  bool configured = false;

  bool has(Rank rank) const;
  // The index of `rank` in `members`, which is its rank within the group; -1 if
  // it is not a member.
  std::int32_t place(Rank rank) const;
};

// One rank's dump in the job.
struct RankDump {
  Rank rank;
  std::string file;  // as given; with the name of an archive's member
  std::string host;  // empty if unknown
  TextId version;
  TextId library;
  bool json = false;
  bool complete = true;  // false: the file is truncated or damaged
  // What its log says: the last operations of some groups, without times.
  bool reported = false;
  // Those of its pg_config and its entries, sorted.
  std::vector<GroupId> groups;
  std::vector<GroupStatus> statuses;
  std::vector<Extra> extras;
  Entries entries;
  std::vector<EntryExtra> entry_extras;

  // The index of `group` in `groups`, or where it would be inserted.
  std::size_t group_place(GroupId group) const;
};

// A file that is not the dump of a rank of the job.
struct SkippedFile {
  std::string file;
  std::string reason;
  bool empty = false;      // the dump was never written
  std::int32_t rank = -1;  // from its name; -1 if that has none
};

// All dumps of one job. The ranks share tables of texts, stacks and shapes.
struct Job {
  Tables tables;
  std::vector<Group> groups;
  std::vector<RankDump> ranks;  // sorted by rank, each rank once
  std::vector<SkippedFile> skipped;
  std::vector<Finding> findings;
  // From outside the dumps (--hosts); also of ranks without a dump.
  std::map<Rank, std::string> hosts;

  std::string_view text(TextId id) const { return tables.text(id); }
  const Call& call(const Entry& entry) const { return tables.call(entry.call); }
  const Group& group(GroupId id) const { return groups[id.value]; }
  Operation operation(const Call& call) const {
    return parse_operation(tables.text(call.name));
  }
  // nullptr if there is no dump of that rank.
  const RankDump* find(Rank rank) const;
  // Empty if unknown. Valid while the job lives.
  std::string_view host_of(Rank rank) const;

  // All ranks in any group or with a dump, sorted.
  std::vector<Rank> world() const;
  // The ranks of world() without a dump.
  std::vector<Rank> without_dump() const;
  // Those among them that left a file which can't be read, sorted.
  std::vector<Rank> with_unreadable_dump() const;
  // The file of a rank that is not a dump; nullptr if none was found.
  const SkippedFile* skipped_of(Rank rank) const;
  // The findings, and one for each skipped file: a warning if it should have
  // been the dump of a rank, otherwise a note.
  std::vector<Finding> all_findings() const;
  std::uint64_t entry_count() const;
  std::uint64_t memory_bytes() const;
};

}  // namespace postflight
