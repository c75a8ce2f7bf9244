#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "synthetic/schedule.h"
#include "synthetic/simulation.h"
#include "synthetic/topology.h"

namespace postflight::synthetic {

// How a rank's recorder was set up, and when it was asked.
struct RecorderOptions {
  std::string backend = "nccl";
  std::string version = "2.10";
  std::size_t ring = 2000;
  bool timing = false;
  bool only_active = false;
  bool stacks = true;
  std::int64_t timeout_ms = 600'000;
  std::int64_t asked_at = 0;      // by the clock of the simulation
  std::int64_t clock_offset = 0;  // of the host

  bool gloo() const { return backend == "gloo"; }
  int minor_version() const;
};

// One entry as the dump will have it. Times are the host's.
struct ShownEntry {
  const Record* record = nullptr;
  std::int64_t record_id = 0;
  std::string_view state = "scheduled";
  std::int64_t created = 0;
  std::int64_t started = 0;  // 0: not seen
  std::int64_t completed = 0;
  double duration_ms = -1;  // -1: not known
  bool retired = false;
};

struct ShownStatus {
  int local_id = 0;
  std::int64_t enqueued = -1;
  std::int64_t started = -1;
  std::int64_t completed = -1;
};

// The contents of a rank's dump.
struct Shown {
  int rank = 0;
  std::vector<int> groups = {};  // whose communicators exist
  std::vector<ShownStatus> statuses = {};
  std::vector<ShownEntry> entries = {};
};

// The dump of that rank's recorder. A watchdog checks every 100 ms for finished
// operations; what it has not seen yet is checked when dumping, but stays on
// its list.
Shown look(int rank, const std::vector<Record>& records,
           const Topology& topology, const RecorderOptions& options);

// The dump in the dialect of torch's pickler, or in that of its JSON.
std::string pickle_dump(const Shown& shown, const Schedule& schedule,
                        const Topology& topology,
                        const RecorderOptions& options);
std::string json_dump(const Shown& shown, const Schedule& schedule,
                      const Topology& topology, const RecorderOptions& options);

// The parts both have in common.
std::string entry_name(const Record& record, const CallSite& site, int position,
                       const RecorderOptions& options);
std::vector<Tensor> entry_outputs(const Record& record, const CallSite& site,
                                  int position, int members);
std::string member_text(const std::vector<int>& members);
struct ThreadText {
  std::string_view name;
  std::string id;
};
ThreadText thread_of(const Record& record, const CallSite& site, int rank);

}  // namespace postflight::synthetic
