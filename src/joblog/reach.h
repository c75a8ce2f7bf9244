#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "joblog/progress.h"

namespace postflight {

// How far a rank came in a group, as far as the numbers of its log can be
// believed.
struct Reach {
  std::int64_t done = 0;
  std::int64_t enqueued = 0;
  std::optional<std::int64_t> pending;  // the oldest that is not done
  bool transfer = false;                // that is a point-to-point operation
  bool firm = true;                     // its numbers fit together
  bool dropped = false;                 // nothing can be told from it
};

// Nothing if the line tells no numbers.
std::optional<Reach> reach_of(const LogProgress& said);

// Whether a number was ever set: recorders of some versions print what their
// memory had.
bool is_set(const std::optional<std::int64_t>& number);

// "nccl:all_reduce" for "ALLREDUCE", as dumps have it.
std::string recorded_name(std::string_view type);

}  // namespace postflight
