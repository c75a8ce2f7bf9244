#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "base/environment.h"
#include "base/error.h"
#include "flight/diagnosis/verdict.h"
#include "flight/matching/matching.h"
#include "flight/model/entry_filter.h"
#include "flight/model/job.h"
#include "flight/model/job_loader.h"
#include "stacks/snapshot.h"

namespace postflight {

// Everything that is known about a job that has ended or hangs.
struct JobEvidence {
  // As for load_job(). If there are none, the logs alone are looked at.
  std::vector<std::string> dumps;
  LoadOptions load = {};
  // Which ranks ran where: a file or a Slurm node list, see read_host_map().
  std::string hosts = {};
  std::vector<std::string> logs = {};  // files, folders or globs
  // Files or folders, see read_saved_stacks().
  std::vector<std::string> stacks = {};
};

// What is known, with the matching that the verdict rests on.
struct Investigation {
  explicit Investigation(Job dumps, const Context& context)
      : loaded(std::make_unique<const Job>(std::move(dumps))),
        matching(*loaded, context) {}

  const Job& job() const { return *loaded; }

  std::unique_ptr<const Job> loaded;  // stays where it is: others point to it
  Matching matching;
  Verdict verdict = {};
  std::optional<StackSnapshot> stacks = {};  // if any were given
};

// Says what happened to a job and who is at fault. Every input that is given
// has to be readable, though single dumps among many may be damaged.
Result<Investigation> investigate(const JobEvidence& evidence,
                                  const Context& context);

// Whether a verdict calls for action, by the table of kinds. If strict, a job
// in progress and warnings among the findings count, too.
bool is_problem(const Verdict& verdict, bool strict = false);

// Patterns for the dumps in the first of the recorders' default places that has
// any. The error lists the places.
Result<std::vector<std::string>> default_dumps(const Environment& environment);

// The groups with this name or description, in the order of their members; the
// error lists all groups.
Result<std::vector<GroupId>> find_groups(const Job& job, std::string_view name);
// The rank, if it is part of the job; the error lists all ranks.
Result<Rank> find_rank(const Job& job, std::int32_t number);

// The hosts of the ranks at fault, sorted, each once. Ranks whose host is not
// known are left out.
std::vector<std::string> culprit_hosts(const Job& job, const Verdict& verdict);
// Those ranks, sorted.
std::vector<Rank> culprits_without_host(const Job& job, const Verdict& verdict);

// Which entries to show, as a user writes it; all of them if nothing is given.
struct EntrySelection {
  std::string ranks = {};                    // "0-15,32-1016:8"
  std::string sequences = {};                // "100-200", "1400-"
  std::vector<std::string> groups = {};      // globs
  std::vector<std::string> operations = {};  // globs
  std::vector<std::string> states = {};      // "scheduled"
};

Result<EntryFilterOptions> parse_selection(const EntrySelection& selection);

}  // namespace postflight
