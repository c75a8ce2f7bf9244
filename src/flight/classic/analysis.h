#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flight/classic/problem.h"
#include "flight/matching/collective_table.h"
#include "flight/model/job.h"

namespace postflight {

// The analysis that torchfrtrace does, with its bugs mended (docs/
// differences.md): which entries of the ranks are one collective, whether they
// agree, and who is missing or differs.

struct ClassicOptions {
  // A group with more mismatches than this is given up.
  std::int64_t mismatch_cap = 10;
};

// What the ranks of a group did under one sequence number, or a send and its
// receive.
struct ClassicCollective {
  GroupId group;
  ClassicEntry shown;  // the entry that stands for all
  std::uint64_t first_call = 0;
  std::uint32_t call_count = 0;
  std::int64_t problem = -1;  // index into problems
  // All joined and agree, and nothing was wrong in the group before.
  bool matched = false;
  bool batch = false;        // made of several entries a rank
  bool gave_up = false;      // the last of its group: the cap was reached
  Rank peers[2] = {{}, {}};  // of a point-to-point operation
  bool point_to_point = false;
};

struct ClassicCall {
  ClassicEntry where;
  std::uint64_t collective = 0;  // index into collectives
};

// The oldest operation that some rank has not finished.
struct ClassicUnfinished {
  ClassicEntry where;
  std::map<State, std::vector<Rank>> ranks;  // who waits in it, by its state
};

struct ClassicAnalysis {
  std::vector<GroupId> groups;  // in the order in which the ranks list them
  std::vector<ClassicCollective> collectives;
  std::vector<ClassicCall> calls;
  std::vector<ClassicProblem> problems;
  std::optional<ClassicUnfinished> unfinished;

  const ClassicProblem* problem(const ClassicCollective& collective) const {
    return collective.problem < 0
               ? nullptr
               : &problems[static_cast<std::size_t>(collective.problem)];
  }
};

ClassicAnalysis analyze_classic(const Matching& matching,
                                const CollectiveTable& table,
                                const ClassicOptions& options = {});

// Whether these ranks left dumps that are cut, so that what is missing is the
// end of each.
bool are_cut(const Job& job, std::span<const Rank> ranks);

// Who should take part, in order.
std::vector<Rank> expected_ranks(const Job& job,
                                 const ClassicCollective& collective);

}  // namespace postflight
