#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flight/model/job.h"

namespace postflight {

// How an entry differs from that of the majority.
enum class ClassicMismatch : std::uint8_t { kType, kSize, kState, kDtype };

// As torchfrtrace calls it.
constexpr std::string_view mismatch_name(ClassicMismatch mismatch) {
  switch (mismatch) {
    case ClassicMismatch::kType:
      return "COLLECTIVE_TYPE_MISMATCH";
    case ClassicMismatch::kSize:
      return "SIZE_OR_SYNTAX_MISMATCH";
    case ClassicMismatch::kState:
      return "COLLECTIVE_STATE_MISMATCH";
    case ClassicMismatch::kDtype:
      return "COLLECTIVE_DTYPE_MISMATCH";
  }
  return "";
}

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

inline Entry entry_at(const Job& job, ClassicEntry where) {
  return job.ranks[where.rank].entries[where.entry];
}

}  // namespace postflight
