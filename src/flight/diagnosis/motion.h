#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flight/matching/matching.h"

namespace postflight {

// What the dumps tell of the time between the first and the last of them.
struct Motion {
  // By place in Job::ranks. Alive: it had finished something that its watchdog,
  // which polls every 100 ms, had not noticed yet.
  std::vector<char> alive;
  // It waits in an operation that others have finished, so that its dump is
  // older than theirs, or its device is stuck.
  std::vector<char> lagging;
  std::size_t complete = 0;      // dumps that tell how far their rank came
  std::size_t stale_count = 0;   // of these, older than others
  std::size_t behind_count = 0;  // stale or lagging
  std::size_t alive_count = 0;   // alive, and neither stale nor lagging
  // The longest time that an operation took from creation to completion.
  std::int64_t longest_ns = 0;
  // The usual time between two operations of a rank; 0 if there are too few.
  std::int64_t gap_ns = 0;
  // Nobody is alive, though operations of this job follow each other faster
  // than the watchdog polls: nothing moved for longer than they take.
  bool still = false;
  std::int64_t stale_for_ns = 0;  // from the oldest dump's last sign to the
                                  // newest's; 0 if clocks don't tell
};

Motion find_motion(const Matching& matching);

}  // namespace postflight
