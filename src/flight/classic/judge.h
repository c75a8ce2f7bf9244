#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flight/classic/problem.h"
#include "flight/matching/collective_table.h"
#include "flight/matching/matching.h"

namespace postflight {

// A rank's part in a collective.
struct ClassicJoined {
  ClassicEntry shown;  // of a batch the entry that is reported
  bool pending = false;
};

// What torchfrtrace has to say about one collective or message.
struct ClassicJudgement {
  ClassicEntry shown;
  std::vector<ClassicJoined> joined;  // in order of ranks
  bool batch = false;
  bool point_to_point = false;
  Rank peers[2] = {{}, {}};
  std::optional<ClassicProblem> problem;
  // A send that has finished does not need its receive yet.
  bool evident = true;
};

// Puts rows of the table into torchfrtrace's terms.
class ClassicJudge {
 public:
  static constexpr std::uint32_t kNone = Collective::kNone;

  // Both must outlive it.
  ClassicJudge(const Matching& matching, const CollectiveTable& table);

  // The row that an entry belongs to; kNone if there is none.
  std::uint32_t row_of(std::uint32_t rank, std::uint32_t entry) const {
    return rows_[rank][entry];
  }
  // The entry of the oldest operation that the rank waits in; kNone if none.
  std::uint32_t oldest_pending(std::uint32_t rank) const {
    return oldest_pending_[rank];
  }
  // A message is told from the side of the rank that is given.
  ClassicJudgement judge(std::uint32_t row, std::uint32_t rank) const;

 private:
  // One rank's entries of a row.
  using Party = std::span<const Match>;
  struct Absent {
    std::vector<Rank> missing;
    std::vector<Rank> without_dump;
  };

  void find_oldest_pending();
  std::vector<Party> parties(const Collective& row) const;
  ClassicJudgement collective(const Collective& row) const;
  ClassicJudgement message(const Collective& row, std::uint32_t rank) const;
  Absent absent(const Collective& row, std::span<const Party> parties) const;
  // Sets what is shown, and lists who differs.
  std::vector<ClassicError> differences(const Collective& row,
                                        std::span<const Party> parties,
                                        ClassicJudgement& judgement) const;
  std::vector<ClassicError> compare_states(const Collective& row,
                                           ClassicJudgement& judgement) const;
  bool has_finished(const Collective& row, const ClassicJoined& one) const;
  bool is_stalled(const ClassicJoined& joined, std::int64_t finished) const;
  CallId call_of(ClassicEntry where) const {
    return job_.ranks[where.rank].entries.call(where.entry);
  }

  const Matching& matching_;
  const CollectiveTable& table_;
  const Job& job_;
  std::vector<std::vector<std::uint32_t>> rows_;  // by rank and entry
  std::vector<std::uint32_t> oldest_pending_;
  std::vector<char> has_incomplete_;  // by group: a member's dump breaks off
};

}  // namespace postflight
