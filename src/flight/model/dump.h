#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "flight/model/entry.h"
#include "flight/model/tables.h"

namespace postflight {

// A process group as a rank's pg_config has it.
struct GroupConfig {
  TextId name;
  TextId description;
  TextId ranks;  // "[0, 1]", as written; Job reads it
};

// What a rank's pg_status says of one of its groups. A hint only: it lags
// behind the entries and mixes up collective and point-to-point numbers.
struct GroupStatus {
  std::int64_t local_group = 0;
  std::int64_t last_enqueued = -1;
  std::int64_t last_started = -1;
  std::int64_t last_completed = -1;
};

// A key that we don't know, with its value as text.
struct Extra {
  TextId key;
  TextId value;
};

struct EntryExtra {
  std::uint32_t entry = 0;
  Extra extra;
};

// The contents of one dump, its texts and shapes in tables of its own.
struct Dump {
  Tables tables;
  TextId version;  // "2.10"; empty where there was none
  TextId library;  // nccl_version or comm_lib_version
  bool json = false;
  std::vector<GroupConfig> groups;
  std::vector<GroupStatus> statuses;
  std::vector<Extra> extras;  // other keys of the dump
  Entries entries;
  std::vector<EntryExtra> entry_extras;
  std::uint64_t broken_entries = 0;  // left out: no dictionaries
  std::string imports;  // a name that Python would import to load it, if any
  // Why not all of it could be read; what came before that is here.
  std::optional<Error> damage;
};

}  // namespace postflight
