#include "joblog/ending.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "flight/model/entry.h"

namespace postflight {

using enum LogEventKind;

bool follows_from_others(std::string_view message) {
  constexpr std::array<std::string_view, 26> kWords = {
      "Monitored Barrier",
      "ProcessGroupWrapper",
      "Watchdog caught",
      "watchdog",
      "NCCL error",
      "NCCL communicator was aborted",
      "ncclRemoteError",
      "ncclSystemError",
      "DistBackendError",
      "DistNetworkError",
      "DistStoreError",
      "Connection closed by peer",
      "Connection reset by peer",
      "Connection refused",
      "Broken pipe",
      "Timed out waiting",
      "monitoredBarrier",
      "wait timeout",
      "Socket Timeout",
      "failed to recv",
      "recvValue failed",
      "sendBytes failed",
      "Detected mismatch between collectives",
      "SignalException",
      "KeyboardInterrupt",
      "SIGTERM"};
  return std::ranges::any_of(kWords, [&](std::string_view words) {
    return message.find(words) != message.npos;
  });
}

bool ends_a_process(const LogEvent& event) {
  constexpr std::int64_t kAbort = -6;
  constexpr std::int64_t kTerminate = -15;
  switch (event.kind) {
    case kTraceback:
    case kCudaError:
    case kGpuOutOfMemory:
    case kHostOutOfMemory:
    case kCrash:
    case kXid:
      return true;
    case kKilled:
    case kWorkerFailed:
      return event.number != kAbort && event.number != kTerminate;
    default:
      return false;
  }
}

std::string event_text(const LogEvent& event) {
  constexpr std::size_t kMost = 120;
  std::string text = event.message.substr(0, kMost);
  if (event.message.size() > kMost)
    text += "...";
  return event.frame.empty() ? text : text + " at " + event.frame;
}

bool is_later(const LogTime& a, const LogTime& b, std::int64_t margin) {
  return a.has_year == b.has_year &&
         elapsed(b.nanoseconds, a.nanoseconds) > margin;
}

Timeouts::Timeouts(const JobLog& log) {
  for (const LogProgress& said : log.progress)
    if (said.timed_out && said.rank) {
      ranks.insert(*said.rank);
      add(said.time);
    }
  for (const LogClaim& claim : log.claims)
    if (claim.rank && (claim.kind == LoggedClaim::Kind::kBarrier ||
                       claim.kind == LoggedClaim::Kind::kReached)) {
      ranks.insert(*claim.rank);
      add(claim.time);
    }
  victims = ranks;
  for (const LogEvent& event : log.events) {
    if (event.of_earlier_attempt)
      continue;
    const bool gave_up =
        event.kind == kCollectiveTimeout || event.kind == kGlooTimeout;
    if (!gave_up &&
        !(ends_a_process(event) && follows_from_others(event.message)))
      continue;
    victims.insert(event.ranks.begin(), event.ranks.end());
    add(event.time);
    add(event.last);
  }
}

void Timeouts::add(const std::optional<LogTime>& time) {
  if (!time)
    return;
  if (!first || is_later(*first, *time, 0))
    first = time;
  if (!last || is_later(*time, *last, 0))
    last = time;
}

bool Timeouts::came_before(const LogEvent& event) const {
  constexpr std::int64_t kMargin = kNanosecondsPerSecond;
  return event.time && first && is_later(*event.time, *first, kMargin);
}

namespace {

// Whether a rank went on after what seems to have ended it: the exception was
// caught, or it was started again.
bool went_on(const JobLog& log, const LogEvent& event, Rank rank) {
  // For what other threads write until the process has gone.
  constexpr std::int64_t kAfterlife = 60 * kNanosecondsPerSecond;
  const auto heard = log.heard.find(rank);
  const std::optional<LogTime>& ended = event.last ? event.last : event.time;
  return heard != log.heard.end() && ended &&
         is_later(heard->second, *ended, kAfterlife);
}

// The events by which ranks ended, and that do not follow from others.
std::vector<LogEvent> ends_of_ranks(const JobLog& log,
                                    const Timeouts& timeouts) {
  std::vector<LogEvent> found;
  for (LogEvent event : log.events) {
    if (event.of_earlier_attempt || !ends_a_process(event) ||
        event.ranks.empty() || follows_from_others(event.message) ||
        timeouts.came_before(event))
      continue;
    std::erase_if(event.ranks,
                  [&](Rank rank) { return went_on(log, event, rank); });
    // A launcher says only that it failed.
    const bool only_status = event.kind == kWorkerFailed;
    const std::set<Rank>& others =
        only_status ? timeouts.victims : timeouts.ranks;
    if (event.ranks.empty() || (only_status && event.ranks.size() > 1) ||
        std::ranges::any_of(event.ranks,
                            [&](Rank rank) { return others.contains(rank); }))
      continue;
    found.push_back(std::move(event));
  }
  return found;
}

}  // namespace

// The first of them, if their order is known.
std::optional<LogEvent> first_end(const JobLog& log, const Timeouts& timeouts,
                                  std::size_t world) {
  const std::vector<LogEvent> found = ends_of_ranks(log, timeouts);
  if (found.empty())
    return std::nullopt;
  const auto root = std::ranges::find(found, true, &LogEvent::first_cause);
  std::optional<LogEvent> first;
  if (root != found.end()) {
    // What it died of says more than its status.
    first = *root;
    for (const LogEvent& event : found)
      if (event.ranks == first->ranks && event.kind != kWorkerFailed) {
        first = event;
        break;
      }
  } else {
    const bool ordered = std::ranges::all_of(found, [&](const LogEvent& event) {
      return event.ranks == found[0].ranks ||
             (event.time && found[0].time &&
              event.time->has_year == found[0].time->has_year) ||
             event.file == found[0].file;
    });
    if (ordered)
      first = found[0];
  }
  if (!first || first->ranks.size() * 2 > world)
    return std::nullopt;
  return first;
}

}  // namespace postflight
