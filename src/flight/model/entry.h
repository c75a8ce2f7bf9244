#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "flight/model/id.h"

namespace postflight {

// The progress of an operation when the dump was taken.
enum class State : std::uint8_t {
  kScheduled,
  kStarted,  // only where start times are recorded
  kCompleted,
  kUnknown,  // a state of a newer recorder
};

constexpr std::string_view state_name(State state) {
  switch (state) {
    case State::kScheduled:
      return "scheduled";
    case State::kStarted:
      return "started";
    case State::kCompleted:
      return "completed";
    case State::kUnknown:
      return "unknown";
  }
  return "";
}

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

// The time from `begin` to `end`. It saturates instead of overflowing, because
// times are untrusted input.
constexpr std::int64_t elapsed(std::int64_t begin, std::int64_t end) {
  std::int64_t time = 0;
  if (!__builtin_sub_overflow(end, begin, &time))
    return time;
  return end > begin ? std::numeric_limits<std::int64_t>::max()
                     : std::numeric_limits<std::int64_t>::min();
}

// One recorded operation of one rank. Its name, group and tensors are in its
// call.
struct Entry {
  CallId call;
  StackId stack;
  ThreadId thread;
  std::int64_t record_id = 0;  // numbers the records of this rank
  std::int64_t sequence = 0;   // collective_seq_id, per group
  std::int64_t p2p_sequence = 0;
  std::int64_t operation_id = 0;
  // Nanoseconds since 1970 by the host's clock; 0 if not recorded.
  std::int64_t created = 0;
  std::int64_t started = 0;  // when the watchdog noticed; so is completed
  std::int64_t completed = 0;
  double duration_ms = -1;  // -1 if not recorded
  State state = State::kScheduled;
  bool retired = false;  // the watchdog no longer waits for it
};

// One field of all entries of a rank, in order. A column whose values are all
// equal, as with many time-outs and threads, stores that value once.
template <class T>
class Column {
 public:
  void push_back(const T& value) {
    if (size_ == 0)
      first_ = value;
    if (!values_.empty() || value != first_) {
      if (values_.empty())
        values_.assign(size_, first_);
      values_.push_back(value);
    }
    ++size_;
  }

  const T& operator[](std::size_t index) const {
    return values_.empty() ? first_ : values_[index];
  }

  // Replaces each value by change(value).
  template <class Change>
  void transform(Change&& change) {
    first_ = size_ == 0 ? first_ : change(first_);
    for (T& value : values_)
      value = change(value);
  }

  std::size_t size() const { return size_; }
  void shrink() { values_.shrink_to_fit(); }
  std::uint64_t memory_bytes() const { return values_.capacity() * sizeof(T); }

 private:
  T first_{};
  std::size_t size_ = 0;
  std::vector<T> values_;  // empty while all equal first_
};

// All entries of one rank, oldest first, stored as one column per field.
class Entries {
 public:
  void push_back(const Entry& entry);
  Entry operator[](std::size_t index) const;
  std::size_t size() const { return states_.size(); }
  bool empty() const { return size() == 0; }

  // Single fields, cheaper than a whole entry.
  CallId call(std::size_t index) const { return calls_[index]; }
  std::int64_t sequence(std::size_t index) const { return sequences_[index]; }
  std::int64_t p2p_sequence(std::size_t index) const {
    return p2p_sequences_[index];
  }
  std::int64_t created(std::size_t index) const { return created_[index]; }
  std::int64_t started(std::size_t index) const { return started_[index]; }
  std::int64_t completed(std::size_t index) const { return completed_[index]; }
  State state(std::size_t index) const {
    return static_cast<State>(states_[index] & kState);
  }
  bool retired(std::size_t index) const {
    return (states_[index] & kRetired) != 0;
  }

  template <class Change>
  void change_calls(Change&& change) {
    calls_.transform(change);
  }
  template <class Change>
  void change_stacks(Change&& change) {
    stacks_.transform(change);
  }
  template <class Change>
  void change_threads(Change&& change) {
    threads_.transform(change);
  }

  void shrink();
  std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint8_t kState = 3;
  static constexpr std::uint8_t kRetired = 4;

  Column<CallId> calls_;
  Column<StackId> stacks_;
  Column<ThreadId> threads_;
  // Minus the entry's index, as the ids in a ring usually count up by one.
  Column<std::int64_t> record_bases_;
  Column<std::int64_t> sequences_;
  Column<std::int64_t> p2p_sequences_;
  // Minus the sequence number, which is the same unless the group has
  // point-to-point operations.
  Column<std::int64_t> operation_offsets_;
  Column<std::int64_t> created_;
  Column<std::int64_t> started_;
  Column<std::int64_t> completed_;
  Column<double> durations_;
  Column<std::uint8_t> states_;  // kState, and the bit kRetired
};

}  // namespace postflight
