#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "flight/model/entry.h"
#include "flight/model/member_lists.h"
#include "flight/model/tables.h"

namespace postflight {

// A process group in a rank's pg_config.
struct GroupConfig {
  TextId name;
  TextId description;
  // Of the MemberLists that the dump was read with; nullptr if it has none.
  const MemberList* members = nullptr;
};

// The state of one group in a rank's pg_status. Only a hint: it lags behind the
// entries and mixes collective and point-to-point sequence numbers.
struct GroupStatus {
  std::int64_t local_group = 0;
  std::int64_t last_enqueued = -1;
  std::int64_t last_started = -1;
  std::int64_t last_completed = -1;
};

// An unknown key, with its value as text.
struct Extra {
  TextId key;
  TextId value;
};

struct EntryExtra {
  std::uint32_t entry = 0;
  Extra extra;
};

// The contents of one dump. Its texts and shapes are in tables of its own, the
// members of its groups in MemberLists that have to outlive it.
struct Dump {
  Tables tables;
  TextId version;  // "2.10"; may be empty
  TextId library;  // nccl_version or comm_lib_version
  bool json = false;
  std::vector<GroupConfig> groups;
  std::vector<GroupStatus> statuses;
  std::vector<Extra> extras;  // other keys of the dump
  Entries entries;
  std::vector<EntryExtra> entry_extras;
  std::uint64_t broken_entries = 0;  // skipped, as they are not dictionaries
  std::string imports;  // what Python would import to load it, if anything
  // Why only the part before the damage was read.
  std::optional<Error> damage;
};

}  // namespace postflight
