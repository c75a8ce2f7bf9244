#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flight/model/job.h"

namespace postflight {

// Which of a call's arguments ranks disagree about, worst first.
enum class CallArgument : std::uint8_t { kType, kSize, kDtype };

// What one rank passed to a collective.
struct Passed {
  Rank rank;
  CallId call;
};

// Ranks that passed other arguments than most.
struct Disagreement {
  CallArgument argument = CallArgument::kType;
  std::vector<Rank> minority;  // those at fault
  CallId majority_call;
  CallId minority_call;
  bool decided = true;  // false: no side has more ranks than the others
  // What they did: "called all_gather instead of", "passed Half to"; the
  // operation follows.
  std::string difference;
};

// Compares what the ranks of a group passed to one collective, by that
// collective's own rule: elements count, not shapes; only one rank has both
// sides of a scatter or gather; the parts of an all_to_all may differ as long
// as what is sent is received. Nothing if they agree. `group_size` counts
// members.
std::optional<Disagreement> compare_arguments(const Job& job,
                                              std::span<const Passed> passed,
                                              std::size_t group_size);

}  // namespace postflight
