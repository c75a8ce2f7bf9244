#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flight/matching/matching.h"

namespace postflight {

// How often the watchdog looks, and so how coarse the times are at which it
// sees operations end.
constexpr std::int64_t kWatchdogPoll = 100'000'000;  // nanoseconds

// What the dumps tell of the moments at which they were taken, and of what
// happened between them. All vectors are by place in Job::ranks.
struct Motion {
  // Others have finished an operation that needs this rank and that it had not
  // even enqueued. What its dump lacks, it may have done since.
  std::vector<char> older;
  // The dump is from before the others' for some other reason, too: it waits
  // in an operation before one that others have finished, or in the one that
  // they have, and its rank was alive. What it waits in may have ended since.
  std::vector<char> early;
  // It had finished something that its watchdog had not noticed yet.
  std::vector<char> alive;
  // What to subtract from the rank's times to have those of one clock, and the
  // newest time in its dump, by that clock: the dump is no older.
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> moments;

  // By group: the last number that all have certainly joined.
  std::vector<std::int64_t> finished;

  std::size_t complete = 0;  // dumps that tell how far their rank came
  std::size_t older_count = 0;
  std::size_t early_count = 0;  // with the older ones
  // Waits in what others have finished, but need not be early: it can be a
  // device that is stuck.
  std::size_t lagging_count = 0;
  std::size_t alive_count = 0;  // that are not early
  // How many would be alive if the job moved as it did before.
  double expected_alive = 0;
  // The part of its time in which no rank would have shown a sign of life,
  // though it moved; 1 if that is not known.
  double silent = 1;
  // How long it usually went on being so, as a random moment would find it.
  std::int64_t stretch_ns = 0;
  // Of the dumps that tell their moment and are not early, how many show a wait
  // that has lasted longer than operations take, and how many one that has not.
  std::size_t standing_count = 0;
  std::size_t fresh_count = 0;
  std::size_t unsure_count = 0;
  // How many show that their device has not come to the oldest operation, so
  // that it waits for nobody.
  std::size_t computing_count = 0;
  // A watchdog gave up on an operation.
  bool gave_up = false;
  // The longest time that an operation took from creation to completion; 0 if
  // that is not known.
  std::int64_t longest_ns = 0;
  // The usual time between two operations of a rank; 0 if there are too few.
  std::int64_t gap_ns = 0;
  // From the last sign in the oldest dump to that in the newest; 0 if unknown.
  std::int64_t apart_ns = 0;

  // Whether the job certainly or most probably moved while it was dumped.
  bool moved() const;
  // Whether start times show that most devices were busy, or have not waited
  // for longer than usual.
  bool goes_on() const;
};

Motion find_motion(const Matching& matching);

}  // namespace postflight
