#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "synthetic/synthetic_job.h"

namespace postflight::synthetic {

// Whose words a log is in.
enum class LogStyle : std::uint8_t {
  kNamedGroups,  // PyTorch 2.5 to 2.11: "[PG ID 2 PG GUID 5(mesh_tp) Rank 1]"
  kNumbered,     // 2.3: "[PG 5 Rank 1]"; nobody tells others to dump
  kPlain,        // 2.1: "[Rank 1]", without a status
};
constexpr std::size_t kLogStyles = 3;

struct LogOptions {
  LogStyle style = LogStyle::kNamedGroups;
  bool one_file = false;    // of all ranks, interleaved
  bool prefixes = true;     // "[rank3]:" before each line
  bool tells_size = false;  // of the groups, when they are made
  bool reasons = true;      // the dead say what they died of
  // How long after the first time-out the launcher ends everybody.
  std::int64_t kill_after_ms = 60'000;
};

// The logs that the job would leave, by file name: what it prints before it
// hangs, and what its watchdogs say when they give up.
std::map<std::string, std::string> job_logs(const SyntheticJob& job,
                                            const LogOptions& options);

}  // namespace postflight::synthetic
