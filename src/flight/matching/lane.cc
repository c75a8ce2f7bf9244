#include "flight/matching/lane.h"

#include <algorithm>
#include <limits>
#include <set>

#include "flight/matching/entry_role.h"

namespace postflight {

const Slot* Lane::find(std::int64_t sequence) const {
  if (slots.empty() || sequence < slots.front().sequence)
    return nullptr;
  // Mostly there are no gaps.
  const std::uint64_t place =
      static_cast<std::uint64_t>(sequence) -
      static_cast<std::uint64_t>(slots.front().sequence);
  if (place < slots.size() && slots[place].sequence == sequence)
    return &slots[place];
  const auto found =
      std::ranges::lower_bound(slots, sequence, {}, &Slot::sequence);
  return found == slots.end() || found->sequence != sequence ? nullptr
                                                             : &*found;
}

std::span<const std::uint32_t> Lane::members(const Slot& slot) const {
  if (slot.closing == slot.entry)
    return {&slot.entry, 1};
  const auto first = std::ranges::lower_bound(batched, slot.entry);
  const auto end = std::upper_bound(first, batched.end(), slot.closing);
  return {first, end};
}

std::uint32_t Lane::incarnation_of(std::uint32_t entry) const {
  return lost + static_cast<std::uint32_t>(
                    std::ranges::upper_bound(begins, entry) - begins.begin());
}

const Slot* Lane::first_pending() const {
  const auto found = std::ranges::find(slots, false, &Slot::done);
  return found == slots.end() ? nullptr : &*found;
}

Presence presence(const Lane& lane, std::int64_t sequence) {
  if (lane.dump == nullptr)
    return Presence::kNoDump;
  if (const Slot* const slot = lane.find(sequence))
    return slot->done ? Presence::kDone : Presence::kPending;
  if (!lane.bounded || sequence > lane.last_enqueued)
    return lane.tells_absence() ? Presence::kAbsent : Presence::kUnknown;
  return lane.only_active ? Presence::kDone : Presence::kPassed;
}

RowWalk::RowWalk(std::span<const Lane> lanes) : lanes_(lanes) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  std::size_t slots = 0;
  for (std::uint32_t i = 0; i < lanes.size(); ++i)
    if (!lanes[i].slots.empty()) {
      active_.push_back(i);
      slots += lanes[i].slots.size();
      first = std::min(first, lanes[i].slots.front().sequence);
      last = std::max(last, lanes[i].slots.back().sequence);
    }
  following_ = first;
  ended_ = active_.empty();
  if (ended_)
    return;
  // Numbers count up by one, so that all lanes have about the same. Where they
  // don't, looking at all lanes for each number would take forever.
  const std::uint64_t range =
      static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  sorted_ = range / 8 > slots / active_.size();
  if (!sorted_) {
    places_.resize(active_.size());
    return;
  }
  for (const std::uint32_t lane : active_)
    for (const Slot& slot : lanes[lane].slots)
      items_.push_back({slot.sequence, {lane, &slot}});
  std::ranges::stable_sort(items_, {}, &Item::sequence);
}

const Row* RowWalk::next() {
  return sorted_ ? next_sorted() : next_beside();
}

const Row* RowWalk::next_beside() {
  if (ended_)
    return nullptr;
  row_.sequence = following_;
  row_.members.clear();
  ended_ = true;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const std::vector<Slot>& slots = lanes_[active_[i]].slots;
    std::size_t& place = places_[i];
    if (place < slots.size() && slots[place].sequence == row_.sequence)
      row_.members.push_back({active_[i], &slots[place++]});
    if (place < slots.size() &&
        (ended_ || slots[place].sequence < following_)) {
      following_ = slots[place].sequence;
      ended_ = false;
    }
  }
  return &row_;
}

const Row* RowWalk::next_sorted() {
  if (at_ == items_.size())
    return nullptr;
  row_.sequence = items_[at_].sequence;
  row_.members.clear();
  for (; at_ < items_.size() && items_[at_].sequence == row_.sequence; ++at_)
    row_.members.push_back(items_[at_].member);
  return &row_;
}

std::uint32_t last_incarnation(std::span<const Lane> lanes) {
  std::uint32_t last = 0;
  for (const Lane& lane : lanes)
    last = std::max(last, lane.last_incarnation());
  return last;
}

// Incarnations of a group are counted from the first. A ring that has wrapped
// may have lost some; its last one is taken for the group's last.
void align_incarnations(std::span<Lane> lanes) {
  const std::uint32_t last = last_incarnation(lanes);
  if (last == 0)
    return;
  for (Lane& lane : lanes) {
    if (lane.dump == nullptr || lane.last_incarnation() == last)
      continue;
    if (ring_has_wrapped(*lane.dump)) {
      lane.lost = last - lane.last_incarnation();
      for (Lane::Earlier& one : lane.earlier)
        one.incarnation += lane.lost;
      continue;
    }
    // It did not come to the last one.
    for (const Slot& slot : lane.slots)
      lane.earlier.push_back({lane.last_incarnation(), slot});
    lane.slots.clear();
    lane.last_enqueued = 0;
    lane.local_group.reset();
  }
}

// What only reads completed is done if somebody surely is, or if nobody is
// waiting or missing there.
void settle_weak(std::span<Lane> lanes) {
  const bool any = std::ranges::any_of(lanes, [](const Lane& lane) {
    return std::ranges::any_of(lane.slots, &Slot::weak);
  });
  if (!any)
    return;
  // The last numbers of those that would list what they have not done, and of
  // those that list nothing else.
  std::vector<std::int64_t> lasts;
  std::vector<std::int64_t> active;
  for (const Lane& lane : lanes) {
    if (lane.tells_absence())
      lasts.push_back(lane.last_enqueued);
    if (lane.only_active && lane.bounded)
      active.push_back(lane.last_enqueued);
  }
  std::ranges::sort(lasts);
  std::ranges::sort(active);
  std::set<std::int64_t> unconfirmed;
  RowWalk rows(lanes);
  while (const Row* const row = rows.next()) {
    bool weak = false;
    bool firm = false;
    bool unfinished = !lasts.empty() && lasts.front() < row->sequence;
    auto silent =
        active.end() - std::ranges::lower_bound(active, row->sequence);
    for (const Row::Member& member : row->members) {
      weak |= member.slot->weak;
      firm |= member.slot->done && !member.slot->weak;
      unfinished |= !member.slot->done;
      silent -= lanes[member.lane].only_active ? 1 : 0;
    }
    firm |= silent > 0;
    if (weak && !firm && unfinished)
      unconfirmed.insert(row->sequence);
  }
  if (unconfirmed.empty())
    return;
  for (Lane& lane : lanes)
    for (Slot& slot : lane.slots)
      if (slot.weak && unconfirmed.contains(slot.sequence))
        slot.done = false;
}

}  // namespace postflight
