#include "flight/model/entry.h"

namespace postflight {
namespace {

// Differences of untrusted numbers wrap around; sum() reverses that.
std::int64_t difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) -
                                   static_cast<std::uint64_t>(b));
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                   static_cast<std::uint64_t>(b));
}

}  // namespace

void Entries::push_back(const Entry& entry) {
  const auto index = static_cast<std::int64_t>(size());
  calls_.push_back(entry.call);
  stacks_.push_back(entry.stack);
  threads_.push_back(entry.thread);
  record_bases_.push_back(difference(entry.record_id, index));
  sequences_.push_back(entry.sequence);
  p2p_sequences_.push_back(entry.p2p_sequence);
  operation_offsets_.push_back(difference(entry.operation_id, entry.sequence));
  created_.push_back(entry.created);
  started_.push_back(entry.started);
  completed_.push_back(entry.completed);
  durations_.push_back(entry.duration_ms);
  states_.push_back(static_cast<std::uint8_t>(
      static_cast<std::uint8_t>(entry.state) | (entry.retired ? kRetired : 0)));
}

Entry Entries::operator[](std::size_t index) const {
  return {
      .call = calls_[index],
      .stack = stacks_[index],
      .thread = threads_[index],
      .record_id = sum(record_bases_[index], static_cast<std::int64_t>(index)),
      .sequence = sequences_[index],
      .p2p_sequence = p2p_sequences_[index],
      .operation_id = sum(operation_offsets_[index], sequences_[index]),
      .created = created_[index],
      .started = started_[index],
      .completed = completed_[index],
      .duration_ms = durations_[index],
      .state = state(index),
      .retired = retired(index),
  };
}

void Entries::shrink() {
  calls_.shrink();
  stacks_.shrink();
  threads_.shrink();
  record_bases_.shrink();
  sequences_.shrink();
  p2p_sequences_.shrink();
  operation_offsets_.shrink();
  created_.shrink();
  started_.shrink();
  completed_.shrink();
  durations_.shrink();
  states_.shrink();
}

std::uint64_t Entries::memory_bytes() const {
  return calls_.memory_bytes() + stacks_.memory_bytes() +
         threads_.memory_bytes() + record_bases_.memory_bytes() +
         sequences_.memory_bytes() + p2p_sequences_.memory_bytes() +
         operation_offsets_.memory_bytes() + created_.memory_bytes() +
         started_.memory_bytes() + completed_.memory_bytes() +
         durations_.memory_bytes() + states_.memory_bytes();
}

}  // namespace postflight
