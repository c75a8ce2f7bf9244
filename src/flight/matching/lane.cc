#include "flight/matching/lane.h"

#include <algorithm>
#include <limits>

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

}  // namespace postflight
