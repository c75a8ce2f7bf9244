#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "flight/model/job.h"

namespace postflight {

// One collective of one rank: its number, the entry that says what it is, and
// the one that says how far it came (of a batch, the entry that closes it).
struct Slot {
  std::int64_t sequence = 0;
  std::uint32_t entry = 0;
  std::uint32_t closing = 0;
  bool done = false;
  // It reads completed, but nothing else confirms that: an operation that was
  // never launched looks like this.
  bool weak = false;
};

// A member of a group, as far as its dump tells.
struct Lane {
  Rank rank;
  const RankDump* dump = nullptr;  // nullptr: it left none
  std::vector<Slot> slots;         // with rising numbers
  std::int64_t last_enqueued = 0;
  bool only_active = false;  // what was done is not listed
  // Others are done with later operations that need this rank: its dump is
  // older than theirs, and what it lacks it may have done since.
  bool stale = false;

  // nullptr if the number is not listed.
  const Slot* find(std::int64_t sequence) const;
  // The oldest one that is not done.
  const Slot* first_pending() const;
};

// What a member of a group is at a number.
enum class Presence : std::uint8_t { kDone, kPending, kAbsent, kUnknown };
Presence presence(const Lane& lane, std::int64_t sequence);

// One send or receive of one rank.
struct Transfer {
  GroupId group;
  Rank peer;
  bool send = false;
  std::uint32_t entry = 0;
  std::uint32_t closing = 0;
  bool done = false;
};

// The entries of a job sorted into what can be compared between ranks:
// collectives by group and number, transfers by pair and order.
class Timeline {
 public:
  explicit Timeline(const Job& job);

  const Job& job() const { return *job_; }
  const Operation& operation(CallId call) const {
    return operations_[call.value];
  }
  // One for each member, in order.
  std::span<const Lane> lanes(GroupId group) const {
    return lanes_[group.value];
  }
  const Lane* lane(GroupId group, Rank rank) const;
  // Of the rank at this place of Job::ranks, in the order of its entries.
  std::span<const Transfer> transfers(std::size_t rank_index) const {
    return transfers_[rank_index];
  }
  bool has_transfers(GroupId group) const {
    return with_transfers_[group.value];
  }
  // Whether work of this entry's backend ever reads completed. Gloo's does
  // not: there, what left the watchdog's list is done or failed.
  bool completes(const Entry& entry) const;
  // The newest time that the rank's dump knows of; the dump is no older.
  std::int64_t latest(std::size_t rank_index) const {
    return latest_[rank_index];
  }
  // The newest time at which it saw something end.
  std::int64_t latest_completion(std::size_t rank_index) const {
    return latest_completions_[rank_index];
  }
  // Whether this rank recorded when operations started.
  bool has_starts(std::size_t rank_index) const {
    return has_starts_[rank_index];
  }

 private:
  void find_backends();
  void make_lanes();
  void fill_all();
  void fill(std::size_t rank_index);
  static void close_batches(const RankDump& dump,
                            std::vector<Transfer>& transfers);
  void set_bounds();
  void find_stale();
  void settle_weak();
  bool is_done(const RankDump& dump, std::size_t entry) const;
  bool is_only_active(const RankDump& dump) const;

  const Job* job_;
  std::vector<Operation> operations_;  // by the call's CallId
  std::vector<std::vector<Lane>> lanes_;
  std::vector<std::vector<Transfer>> transfers_;
  std::vector<char> with_transfers_;
  std::vector<char> name_completes_;  // by the name's TextId
  std::vector<std::int64_t> latest_;
  std::vector<std::int64_t> latest_completions_;
  std::vector<char> has_starts_;
};

}  // namespace postflight
