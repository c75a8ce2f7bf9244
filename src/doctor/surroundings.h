#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "flight/model/job.h"

namespace postflight {

// The folder that dumps go to, as this machine sees it.
struct DumpFolder {
  std::string path = {};
  bool exists = false;
  bool writable = false;
  std::string file_system = {};  // "ext4"; empty if not known
  bool local = false;            // to this node or container
};

// `root` stands before the path: that of a process in a container, or nothing.
DumpFolder look_at_folder(const std::string& path, const std::string& root,
                          std::vector<Finding>& findings);

// What postflight may read of other processes here.
struct ProfilerFacts {
  std::optional<std::int64_t> perf_event_paranoid = {};
  std::int64_t ptrace_scope = 0;  // of yama; 0 without yama
  bool root = false;
  bool cap_sys_ptrace = false;
  bool cap_perfmon = false;

  // "own processes", "processes it has started", "none".
  std::string attach() const;
  // "perf events" or "timers": how a launched program is sampled.
  std::string launch() const;
};

ProfilerFacts look_at_profiler(std::vector<Finding>& findings);

// How much of the past the rings of a job hold.
struct RingFacts {
  std::size_t ranks = 0;
  std::size_t entries = 0;  // of the rank that holds the shortest time
  double seconds = 0;       // of that rank
  std::int32_t rank = -1;   // that rank
  bool wrapped = false;     // entries were overwritten
};

// "8 s"
std::string ring_duration(const RingFacts& ring);

std::optional<RingFacts> look_at_rings(const Job& job,
                                       std::vector<Finding>& findings);

}  // namespace postflight
