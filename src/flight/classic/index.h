#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "flight/classic/calls.h"
#include "flight/model/job.h"

namespace postflight {

// What one rank did under one sequence number of a group: one entry, or the
// entries of a batch, the last of which closes it.
struct ClassicStep {
  std::int64_t sequence = 0;
  std::uint32_t first = 0;  // index into ClassicTrace::entries
  std::uint32_t count : 30 = 1;
  // Whether the rank still waits in it; a batch is judged by its last entry.
  std::uint32_t pending : 1 = 0;
  std::uint32_t taken : 1 = 0;
};

// The collectives of one rank in one group, in order.
struct ClassicTrace {
  std::uint32_t rank = 0;  // index into Job::ranks
  std::vector<std::uint32_t> entries;
  std::vector<ClassicStep> steps;
  std::uint32_t cursor = 0;     // where find() looks first
  bool point_to_point = false;  // the rank also sends or receives here
  // Only where the numbers go down somewhere: the steps of each, and how many
  // of them are known to be taken.
  struct Queue {
    std::vector<std::uint32_t> steps;
    std::size_t next = 0;
  };
  std::map<std::int64_t, Queue> queues;

  std::span<const std::uint32_t> entries_of(const ClassicStep& step) const {
    return std::span(entries).subspan(step.first, step.count);
  }
  std::int64_t last_sequence() const;
  // The first step of this number that is not taken; nullptr if there is none.
  ClassicStep* find(std::int64_t sequence);
  // To be called when all steps are there.
  void finish();
};

// A send or receive.
struct ClassicMessage {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  ClassicEntry where;
  GroupId group;
  Rank peer;
  std::uint32_t partner = kNone;  // the other side's number
  bool send = false;
  bool pending = false;
  bool judged = true;  // false: the other side can't be known
  bool taken = false;
};

// Where an entry went.
struct ClassicPlace {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::uint32_t trace = kNone;  // in its group; kNone - 1 for a message
  std::uint32_t number = 0;     // of the step or message

  bool is_step() const { return trace < kNone - 1; }
  bool is_message() const { return trace == kNone - 1; }
};

// All entries of a job by group and sequence number, built in one pass.
class ClassicIndex {
 public:
  ClassicIndex(const Job& job, const ClassicCalls& calls);

  std::vector<ClassicTrace>& traces(GroupId group) {
    return traces_[group.value];
  }
  // Members with a dump that has no collective of the group.
  const std::vector<std::uint32_t>& silent(GroupId group) const {
    return silent_[group.value];
  }
  // Members that left no dump.
  const std::vector<Rank>& without_dump(GroupId group) const {
    return without_dump_[group.value];
  }
  ClassicMessage& message(std::uint32_t number) { return messages_[number]; }
  const ClassicMessage& message(std::uint32_t number) const {
    return messages_[number];
  }
  ClassicPlace place(std::uint32_t rank, std::uint32_t entry) const {
    return places_[rank][entry];
  }
  // The entry of the oldest operation that the rank waits in; kNone if none.
  std::uint32_t oldest_pending(std::uint32_t rank) const {
    return oldest_pending_[rank];
  }
  // Whether the rank waits in something that its recorder has no entry of:
  // gloo counts messages, but does not list them.
  bool waits_unrecorded(std::uint32_t rank) const {
    return waits_unrecorded_[rank];
  }
  // Whether older entries of the rank were overwritten or left out.
  bool is_cut(std::uint32_t rank) const { return cut_[rank]; }

 private:
  class RankReader;

  void read_rank(std::uint32_t rank, std::uint32_t start);
  void pair_messages();
  void list_members();
  void find_oldest_pending();
  bool has_unrecorded_wait(const RankDump& dump) const;

  const Job& job_;
  const ClassicCalls& calls_;
  std::vector<std::vector<ClassicTrace>>
      traces_;  // by group, in order of ranks
  std::vector<std::vector<std::uint32_t>> silent_;
  std::vector<std::vector<Rank>> without_dump_;
  std::vector<ClassicMessage> messages_;
  std::vector<std::vector<ClassicPlace>> places_;
  std::vector<std::uint32_t> oldest_pending_;
  std::vector<bool> cut_;
  std::vector<bool> waits_unrecorded_;
};

}  // namespace postflight
