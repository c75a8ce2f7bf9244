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

// A process group: a name and a set of ranks. Groups of one name with other
// ranks are other groups.
struct Group {
  TextId name;
  TextId description;
  std::vector<Rank> members;  // in order
  // Whether a pg_config lists the members; else they are the ranks that were
  // seen to use the group, and there may be more.
  bool configured = false;

  bool has(Rank rank) const;
  // The place of `rank` among the members, which is its rank in the group; -1
  // if it is none.
  std::int32_t place(Rank rank) const;
};

// One rank's dump in the job.
struct RankDump {
  Rank rank;
  std::string file;  // as given, with the member of an archive behind it
  std::string host;  // empty if nothing says
  TextId version;
  TextId library;
  bool json = false;
  bool complete = true;  // false: the file was cut off or damaged
  // Those of its pg_config and its entries, in order.
  std::vector<GroupId> groups;
  std::vector<GroupStatus> statuses;
  std::vector<Extra> extras;
  Entries entries;
  std::vector<EntryExtra> entry_extras;

  // Where `group` is in `groups`, or would be.
  std::size_t group_place(GroupId group) const;
};

// A file that was looked at and gave no rank of the job.
struct SkippedFile {
  std::string file;
  std::string reason;
  bool empty = false;      // a dump that was never written
  std::int32_t rank = -1;  // by its name, if that has one
};

// All dumps of one job. Texts, stacks and shapes are shared by all ranks.
struct Job {
  Tables tables;
  std::vector<Group> groups;
  std::vector<RankDump> ranks;  // in order of their ranks, each rank once
  std::vector<SkippedFile> skipped;
  std::vector<Finding> findings;
  // Told apart from the dumps, also of ranks that left none.
  std::map<Rank, std::string> hosts;

  std::string_view text(TextId id) const { return tables.text(id); }
  const Call& call(const Entry& entry) const { return tables.call(entry.call); }
  const Group& group(GroupId id) const { return groups[id.value]; }
  // Of the call's name.
  Operation operation(const Call& call) const {
    return parse_operation(tables.text(call.name));
  }
  // nullptr if there is no dump of that rank.
  const RankDump* find(Rank rank) const;
  // Empty if nothing says. Valid while the job is.
  std::string_view host_of(Rank rank) const;

  // All ranks that any group or dump names, in order.
  std::vector<Rank> world() const;
  // Those of world() that left no dump.
  std::vector<Rank> without_dump() const;
  // All that is to be said of the files: the findings, and a note or, where a
  // rank's dump should have been, a warning for each file skipped.
  std::vector<Finding> all_findings() const;
  std::uint64_t entry_count() const;
  std::uint64_t memory_bytes() const;
};

}  // namespace postflight
