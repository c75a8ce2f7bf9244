#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "synthetic/cluster/program.h"
#include "synthetic/cluster/run.h"
#include "synthetic/cluster/trouble.h"

namespace postflight::synthetic::cluster {

// A job as its dumps show it, and what is true of it.
struct Snapshot {
  std::string name;  // "moving fsdp host_stops, 64 ranks, timing"
  std::string what;  // the row of a table: "hang", "moving", ...
  Layout layout = Layout::kDdp;
  Trouble trouble = Trouble::kNone;
  int world = 0;
  bool moving = false;
  // Its dumps alone do not tell it from another job: a hang of slow operations
  // from one that moves, as far as nothing dates the dumps; a straggler from a
  // clock that is wrong by less than a watchdog's poll. To accuse nobody is
  // right, too.
  bool doubtful = false;
  Truth truth;
  std::map<int, std::string> dumps;  // by rank; empty: an empty file
  // What happened, for who writes its logs.
  Program program;
  Plan plan;
  Ran ran;
  std::int64_t timeout_ms = 0;

  Result<> write(const std::filesystem::path& folder) const;
};

// One of an endless sequence. Odd blocks of ten are drawn from wider ranges
// than even ones: those are for developing rules, these are held back.
Snapshot make_snapshot(std::size_t index);
inline bool is_held_back(std::size_t index) {
  return index / 10 % 2 != 0;
}

}  // namespace postflight::synthetic::cluster
