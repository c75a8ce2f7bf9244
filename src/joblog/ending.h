#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "joblog/job_log.h"

namespace postflight {

// A message of a rank whose peers or launcher ended first.
bool follows_from_others(std::string_view message);
// Whether a process ends by it, and not because it was told to.
bool ends_a_process(const LogEvent& event);
// "OSError: shard-17 at data.py:88", truncated.
std::string event_text(const LogEvent& event);
// Whether `a` is later than `b` by more than a margin; not if they can't be
// compared.
bool is_later(const LogTime& a, const LogTime& b, std::int64_t margin);

// Who gave up on others, and when: its watchdog, its transport, or what it
// raised when others had gone.
struct Timeouts {
  explicit Timeouts(const JobLog& log);

  bool came_before(const LogEvent& event) const;

  std::set<Rank> ranks;    // who says on what
  std::set<Rank> victims;  // and who only that others are gone
  std::optional<LogTime> first;
  std::optional<LogTime> last;

 private:
  void add(const std::optional<LogTime>& time);
};

// The first event by which a rank ended by itself, in a job of so many ranks:
// an exception, a signal, an error of its device. Nothing if the order of
// several is not known.
std::optional<LogEvent> first_end(const JobLog& log, const Timeouts& timeouts,
                                  std::size_t world);

}  // namespace postflight
