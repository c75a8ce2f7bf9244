#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flight/model/job.h"

namespace postflight {

// What the ranks of one collective disagree about, worst first.
enum class Difference : std::uint8_t {
  kNone,
  kOperation,
  kSizes,
  kDtypes,
  kBatch,  // one rank's batch has more operations than another's
};

constexpr std::string_view difference_name(Difference difference) {
  switch (difference) {
    case Difference::kNone:
      return "none";
    case Difference::kOperation:
      return "operation";
    case Difference::kSizes:
      return "sizes";
    case Difference::kDtypes:
      return "dtypes";
    case Difference::kBatch:
      return "batch";
  }
  return "";
}

// The call that one rank made.
struct Passed {
  Rank rank;
  CallId call;
};

// How the calls of several ranks under one number differ.
struct Disagreement {
  Difference difference = Difference::kNone;
  // Whether the calls cannot work together. What torchfrtrace compares can
  // differ by right: all_reduce counts elements and does not look at shapes, a
  // list of tensors may be gathered in parts of different sizes.
  bool blocks = true;
  // False: no side has more ranks than each of the others.
  bool decided = true;
  // The ranks outside the largest side; of several such sides, outside the one
  // with the lowest rank. Sorted.
  std::vector<Rank> differing;
  // The ranks that can be at fault: those above if decided, else all. Sorted.
  std::vector<Rank> suspects;
  CallId majority_call = {};
  CallId minority_call = {};
  std::uint32_t position = 0;  // in the batch
  // If it blocks, what they did; the operation follows: "called all_gather
  // instead of", "passed Half instead of Float to".
  std::string text;
};

// The one comparison of calls: which of their arguments all ranks of a
// collective must agree on, by operation.
class Calls {
 public:
  // The job must outlive it.
  explicit Calls(const Job& job);

  const Operation& operation(CallId id) const { return operations_[id.value]; }
  std::span<const Operation> operations() const { return operations_; }
  // A number that is equal for calls with the same name, sizes and dtypes.
  std::uint32_t meaning(CallId id) const { return meanings_[id.value]; }
  // Whether the call can differ from others of the same meaning, because its
  // own sizes contradict each other.
  bool is_suspicious(CallId id) const { return suspicious_[id.value] != 0; }

  // Whether the caller of a scatter or gather takes itself for its root: it
  // passes the parts of all members.
  bool is_root(CallId id, std::size_t members) const;

  // Compares what the ranks of a group called under one number. `members` is
  // the size of the group.
  std::optional<Disagreement> compare(std::span<const Passed> passed,
                                      std::size_t members) const;
  // Compares a send with its receive.
  std::optional<Disagreement> compare(const Passed& send,
                                      const Passed& receive) const;

  // Elements of all inputs or outputs; the largest number if there are more.
  std::int64_t input_numel(CallId id) const;
  std::int64_t output_numel(CallId id) const;

 private:
  // What a rank passes to a scatter or gather: its own part is the smaller
  // side, and the root's other side has the parts of all.
  struct Part {
    std::int64_t own = 0;  // 0 if nothing is recorded
    bool root = false;
  };

  Part part_of(CallId id, std::size_t members) const;
  std::optional<Disagreement> compare_types(std::span<const Passed>) const;
  std::optional<Disagreement> compare_sizes(std::span<const Passed>,
                                            std::size_t members) const;
  std::optional<Disagreement> compare_both_sides(std::span<const Passed>) const;
  std::optional<Disagreement> compare_gathered(std::span<const Passed>) const;
  std::optional<Disagreement> compare_exchanged(std::span<const Passed>,
                                                std::size_t members) const;
  std::optional<Disagreement> compare_rooted(std::span<const Passed>,
                                             std::size_t members) const;
  std::optional<Disagreement> compare_dtypes(std::span<const Passed>) const;
  std::optional<Disagreement> compare_records(std::span<const Passed>) const;
  // The size disagreement that a vote shows; nothing if it is unanimous.
  template <class Vote>
  std::optional<Disagreement> settle_sizes(const Vote& vote) const;
  std::string size_text(const Disagreement& found) const;
  bool contradicts_itself(CallId id) const;

  const Job& job_;
  std::vector<Operation> operations_;  // by CallId, as all below
  std::vector<std::uint32_t> meanings_;
  std::vector<std::uint32_t> records_;  // what torchfrtrace compares
  std::vector<char> suspicious_;
};

}  // namespace postflight
