#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flight/model/job.h"

namespace postflight {

// The analysis that torchfrtrace does, with its bugs mended (docs/
// differences.md): which entries of the ranks are one collective, whether they
// agree, and who is missing or differs.

struct ClassicOptions {
  // A group with more mismatches than this is given up.
  std::int64_t mismatch_cap = 10;
};

// How an entry differs from that of the majority.
enum class ClassicMismatch : std::uint8_t { kType, kSize, kState, kDtype };

// "COLLECTIVE_TYPE_MISMATCH", as torchfrtrace calls it.
std::string_view mismatch_name(ClassicMismatch mismatch);

// One entry of one rank.
struct ClassicEntry {
  std::uint32_t rank = 0;   // index into Job::ranks
  std::uint32_t entry = 0;  // index into its entries

  bool operator==(const ClassicEntry&) const = default;
};

struct ClassicError {
  ClassicEntry where;
  ClassicMismatch mismatch = ClassicMismatch::kType;
  std::string text;  // quotes bytes of a file; may be empty
};

enum class ClassicProblemKind : std::uint8_t {
  kMissingRanks,  // not all ranks joined
  kNumel,         // all_to_all: the sums of inputs and outputs differ
  kErrors,        // operation, sizes, types or states differ
  kMissingDumps,  // can't be decided: members left no dump, or it was cut off
};

struct ClassicProblem {
  ClassicProblemKind kind = ClassicProblemKind::kErrors;
  // False: those who are missing wait for somebody else themselves.
  bool reported = true;
  std::vector<Rank> missing = {};       // all who have not joined
  std::vector<Rank> accused = {};       // of those, who wait for nobody
  std::vector<Rank> without_dump = {};  // members whose part can't be known
  std::vector<ClassicError> errors = {};
  std::int64_t input_numel = 0;  // kNumel
  std::int64_t output_numel = 0;
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
  std::vector<Rank> ranks;  // who waits in it
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

ClassicAnalysis analyze_classic(const Job& job,
                                const ClassicOptions& options = {});

// Who should take part, in order.
std::vector<Rank> expected_ranks(const Job& job,
                                 const ClassicCollective& collective);

inline Entry entry_at(const Job& job, ClassicEntry where) {
  return job.ranks[where.rank].entries[where.entry];
}

}  // namespace postflight
