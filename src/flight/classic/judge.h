#pragma once

#include <optional>
#include <vector>

#include "flight/classic/calls.h"
#include "flight/classic/index.h"

namespace postflight {

// A rank's part in a collective.
struct ClassicJoined {
  ClassicEntry shown;  // of a batch the entry that is spoken of
  std::uint32_t trace = 0;
  std::uint32_t step = 0;
  bool pending = false;
};

// What is to be said of one collective or message.
struct ClassicJudgement {
  ClassicEntry shown;
  std::vector<ClassicJoined> joined;  // in order of ranks
  bool batch = false;
  bool point_to_point = false;
  Rank peers[2] = {{}, {}};
  std::vector<std::uint32_t> messages;  // of a point-to-point operation
  GroupId group;
  std::optional<ClassicProblem> problem;
  // A message that was sent and finished needs nobody to have taken it yet.
  bool evident = true;
};

// Compares what the ranks of a group did under one number.
class ClassicJudge {
 public:
  ClassicJudge(const Job& job, const ClassicCalls& calls, ClassicIndex& index)
      : job_(job), calls_(calls), index_(index) {}

  ClassicJudgement collective(GroupId group, std::int64_t sequence) const;
  ClassicJudgement message(std::uint32_t number) const;
  // Of the rank's oldest pending operation; it must have one.
  ClassicJudgement oldest_pending(std::uint32_t rank) const;

  // Marks all that is part of it, so that it is judged once.
  void take(const ClassicJudgement& judgement) const;

 private:
  struct Absent {
    std::vector<Rank> missing;
    std::vector<Rank> without_dump;
    bool unknown = false;
  };

  std::vector<ClassicJoined> joined(GroupId group, std::int64_t sequence) const;
  Absent absent(GroupId group, std::int64_t sequence,
                const std::vector<ClassicJoined>& joined) const;
  bool may_have_joined(std::uint32_t rank, const ClassicTrace* trace,
                       std::int64_t sequence, std::int64_t local_group) const;
  bool others_are_done(GroupId group, std::int64_t sequence,
                       const std::vector<ClassicJoined>& joined) const;
  // Sets who is spoken of, and lists who differs.
  std::vector<ClassicError> compare(GroupId group,
                                    ClassicJudgement& judgement) const;
  std::vector<ClassicError> compare_shown(std::size_t members,
                                          ClassicJudgement& judgement) const;
  std::vector<ClassicError> compare_states(ClassicJudgement& judgement) const;
  bool is_stalled(const ClassicJoined& joined, std::int64_t finished) const;
  CallId call_of(ClassicEntry where) const {
    return job_.ranks[where.rank].entries.call(where.entry);
  }

  const Job& job_;
  const ClassicCalls& calls_;
  ClassicIndex& index_;
};

}  // namespace postflight
