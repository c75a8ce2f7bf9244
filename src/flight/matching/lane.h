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
  // A batch at the beginning of a ring that has wrapped. Some of its members
  // may have been overwritten, so it can't be compared with other ranks'.
  bool partial = false;
};

// A member of a group, as far as its dump tells.
struct Lane {
  Rank rank;
  const RankDump* dump = nullptr;  // nullptr: it left none
  // With rising numbers. Numbers that fall mean that the group was destroyed
  // and created again; these are of its last incarnation.
  std::vector<Slot> slots;
  struct Earlier {
    std::uint32_t incarnation = 0;  // counts from the first one known
    Slot slot;
  };
  std::vector<Earlier> earlier;  // of the incarnations before, in order
  // The entries with which incarnations begin, without the first one known, and
  // how many are no longer in its ring.
  std::vector<std::uint32_t> begins;
  std::uint32_t lost = 0;
  std::vector<std::uint32_t> batched;  // all members of batches, in order
  // What its own entries call the group in the dump's statuses; and the status,
  // nullptr if none is certainly this group's.
  std::optional<std::int64_t> local_group;
  const GroupStatus* status = nullptr;
  // The last number that the rank came to, and whether the dump tells it: a
  // ring may have overwritten all entries of the group.
  std::int64_t last_enqueued = 0;
  bool bounded = false;
  bool only_active = false;  // what was done is not listed
  // Others are done with later operations that need this rank: its dump is
  // older than theirs, and what it lacks it may have done since.
  bool stale = false;

  // nullptr if the number is not listed.
  const Slot* find(std::int64_t sequence) const;
  // The oldest one that is not done.
  const Slot* first_pending() const;
  // The entries of a slot without the one that closes its batch, in order.
  std::span<const std::uint32_t> members(const Slot& slot) const;
  // That of the last of its own entries.
  std::uint32_t last_incarnation() const {
    return lost + static_cast<std::uint32_t>(begins.size());
  }
  std::uint32_t incarnation_of(std::uint32_t entry) const;
  // Whether numbers beyond the last one were certainly not joined.
  bool tells_absence() const {
    return dump != nullptr && dump->complete && bounded && !stale;
  }
};

// What a member of a group is at a number.
enum class Presence : std::uint8_t {
  kDone,
  kPending,
  kPassed,   // joined it for sure, but the entry is no longer in the dump
  kAbsent,   // not there for sure: the dump ends before it
  kUnknown,  // the dump does not tell
  kNoDump,
};
Presence presence(const Lane& lane, std::int64_t sequence);

// The lanes of a group that list one number, in order.
struct Row {
  struct Member {
    std::uint32_t lane = 0;
    const Slot* slot = nullptr;
  };
  std::int64_t sequence = 0;
  std::vector<Member> members;
};

// Walks the numbers that the lanes of a group list, in rising order, in time
// linear in their slots. The lanes must outlive it.
class RowWalk {
 public:
  explicit RowWalk(std::span<const Lane> lanes);

  // The next row, valid until the next call; nullptr after the last.
  const Row* next();

 private:
  struct Item {
    std::int64_t sequence;
    Row::Member member;
  };

  const Row* next_beside();
  const Row* next_sorted();

  std::span<const Lane> lanes_;
  std::vector<std::uint32_t> active_;  // lanes with slots
  std::vector<std::size_t> places_;    // of each of them, the next slot
  std::vector<Item> items_;            // of lanes without common numbers
  std::size_t at_ = 0;
  std::int64_t following_ = 0;
  bool sorted_ = false;
  bool ended_ = false;
  Row row_;
};

// That of the group: the highest of its members'.
std::uint32_t last_incarnation(std::span<const Lane> lanes);
// Puts the slots of all lanes of a group that are not of its last incarnation
// among the earlier ones.
void align_incarnations(std::span<Lane> lanes);
// Decides which slots of a group that only read completed are done.
void settle_weak(std::span<Lane> lanes);

}  // namespace postflight
