#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/context.h"
#include "flight/matching/calls.h"
#include "flight/matching/entry_role.h"
#include "flight/matching/lane.h"
#include "flight/matching/transfer.h"
#include "flight/model/job.h"

namespace postflight {

// Which entries of a job belong together: the one answer that the diagnosis,
// the database, fr-trace and the grid of entries all read.
//
// Collectives are matched by group and number, transfers by channel and order.
// Both have one rule for what a batch is (EntryRoles), when something is done
// (is_done), what a dump can tell about what it does not list (presence), and
// whether calls agree (Calls).
class Matching {
 public:
  // The job must outlive it.
  explicit Matching(const Job& job, const Context& context = {});

  const Job& job() const { return *job_; }
  const Calls& calls() const { return calls_; }
  const Operation& operation(CallId call) const {
    return calls_.operation(call);
  }
  // What each entry of the rank at this place of Job::ranks is.
  EntryRoles roles(std::size_t rank_index) const;

  // One for each member, in order.
  std::span<const Lane> lanes(GroupId group) const {
    return lanes_[group.value];
  }
  const Lane* lane(GroupId group, Rank rank) const;
  // Whether the entry closes a batch.
  bool closes_batch(const Lane& lane, std::uint32_t entry) const {
    return operation(lane.dump->entries.call(entry)).kind ==
           OperationKind::kCoalesced;
  }
  // The group that a status of the rank at this place of Job::ranks is of,
  // where that is certain.
  std::optional<GroupId> group_of_status(std::size_t rank_index,
                                         std::size_t status) const;
  // How the members of a row differ; nothing if they agree.
  std::optional<Disagreement> compare(GroupId group, const Row& row) const;

  // The last number of the group that is proven to have been joined by all.
  std::int64_t last_finished(GroupId group) const {
    return finished_[group.value];
  }
  // Whether others prove that the dump at this place of Job::ranks is older
  // than theirs.
  bool stale(std::size_t rank_index) const { return stale_[rank_index]; }
  // Whether the slot is certainly done and its operation ends nowhere before
  // all have joined. Then they have, whatever their dumps say.
  bool proves_all_joined(const Lane& lane, const Slot& slot) const;

  // Of the rank at this place of Job::ranks, in the order of its entries.
  std::span<const Transfer> transfers(std::size_t rank_index) const {
    return transfers_[rank_index];
  }
  const Transfer& transfer(TransferPlace place) const {
    return transfers_[place.rank][place.number];
  }
  // In order of groups, senders and receivers.
  std::span<const Channel> channels() const { return channels_; }

  // Whether any collective or transfer of a rank is not done.
  bool any_pending() const;

  // Whether work of this entry's backend ever reads completed. Gloo's does
  // not: there, what left the watchdog's list is done or failed.
  bool completes(const Entry& entry) const;
  // The newest time that the rank's dump knows of; the dump is no older.
  std::int64_t latest(std::size_t rank_index) const {
    return latest_[rank_index];
  }
  // What the rank's operations took, of those that were retired.
  struct Pace {
    std::int64_t longest_ns = 0;   // from creation to completion
    std::int64_t mean_gap_ns = 0;  // between two; 0 if there are fewer than 4
  };
  const Pace& pace(std::size_t rank_index) const { return paces_[rank_index]; }
  // Whether this rank recorded when operations started.
  bool has_starts(std::size_t rank_index) const {
    return has_starts_[rank_index];
  }

 private:
  class RankReader;

  void find_backends();
  void make_lanes();
  void read_ranks(const Context& context);
  void find_statuses();
  void set_bounds();
  void fill_holes();
  void find_stale();
  bool is_done(const RankDump& dump, std::size_t entry) const;
  bool is_only_active(const RankDump& dump) const;

  const Job* job_;
  Calls calls_;
  std::vector<std::vector<Lane>> lanes_;
  std::vector<std::vector<Transfer>> transfers_;
  std::vector<Channel> channels_;
  // Whose a status is, of each rank's statuses.
  struct StatusOwner {
    GroupId group = kNoGroup;
    bool named = false;  // by the rank's own entries
  };
  static constexpr GroupId kNoGroup = {~std::uint32_t{0}};
  std::vector<std::vector<StatusOwner>> status_owners_;
  std::vector<char> with_transfers_;
  std::vector<char> name_completes_;  // by the name's TextId
  std::vector<std::int64_t> latest_;
  std::vector<char> has_starts_;
  std::vector<Pace> paces_;
  std::vector<std::int64_t> finished_;  // by group
  std::vector<char> stale_;
};

}  // namespace postflight
