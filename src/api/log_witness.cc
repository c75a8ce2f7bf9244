// Logs beside dumps: one more witness. Dumps know what was called and who
// waits, so a verdict of theirs stands; the logs are asked where they do not
// tell.
#include "api/log_witness.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/log_verdict.h"
#include "flight/matching/matching.h"
#include "flight/model/rank_set.h"
#include "joblog/ending.h"
#include "joblog/reported_job.h"

namespace postflight {

using enum LogEventKind;

namespace {

void set_culprits(std::vector<Rank> culprits, VerdictKind kind,
                  Verdict& verdict) {
  verdict.kind = kind;
  verdict.confidence = Confidence::kLikely;
  verdict.headline.clear();
  verdict.culprits = std::move(culprits);
  verdict.why.clear();
  for (RankStatus& status : verdict.ranks)
    if (std::ranges::binary_search(verdict.culprits, status.rank))
      status.state = traits(kind).culprits;
}

bool explain_missing(const JobLog& log, const Job& job, Verdict& verdict) {
  const std::optional<LogEvent> end =
      first_end(log, Timeouts(log), job.world().size());
  const std::vector<Rank> missing = job.without_dump();
  if (!end || !std::ranges::includes(missing, end->ranks))
    return false;
  set_culprits(end->ranks, VerdictKind::kNoDump, verdict);
  // A file that can't be read was left all the same.
  const bool left_none = std::ranges::none_of(
      verdict.culprits,
      [&job](Rank rank) { return job.skipped_of(rank) != nullptr; });
  verdict.summary = fmt::format(
      "{} {}ended first, by {} log{}: {}; others wait",
      ranks_label(verdict.culprits), left_none ? "left no dump and " : "",
      verdict.culprits.size() == 1 ? "its" : "their",
      verdict.culprits.size() == 1 ? "" : "s", event_text(*end));
  return true;
}

// A rank that ended but left a dump does not count as one without a dump.
VerdictKind kind_with_dumps(const Verdict& told, const JobLog& log,
                            const Job& job) {
  if (told.kind != VerdictKind::kNoDump ||
      std::ranges::none_of(
          told.culprits, [&](Rank rank) { return job.find(rank) != nullptr; }))
    return told.kind;
  const std::optional<LogEvent> end =
      first_end(log, Timeouts(log), job.world().size());
  return end && (end->kind == kCudaError || end->kind == kXid)
             ? VerdictKind::kDeviceStalled
             : VerdictKind::kNeverJoined;
}

}  // namespace

void consult_logs(const JobLog& log, const Job& job, const Context& context,
                  Verdict& verdict) {
  const bool open =
      verdict.kind == VerdictKind::kInconclusive && verdict.pending;
  if ((open && explain_missing(log, job, verdict)) ||
      (!open && verdict.kind != VerdictKind::kAllJoinedStuck))
    return;
  const ReportedJob reported = make_reported_job(log);
  const Matching matching(reported.job, context);
  const Verdict told = judge_logs(log, reported, matching, context);
  const std::vector<Rank> world = job.world();
  if (told.culprits.empty() || told.confidence < Confidence::kLikely ||
      !std::ranges::includes(world, told.culprits))
    return;
  // Everybody has joined, so nobody is missing; but one may have died in it.
  if (!open && told.kind != VerdictKind::kNoDump)
    return;
  set_culprits(told.culprits, kind_with_dumps(told, log, job), verdict);
  verdict.group.reset();
  verdict.operation.clear();
  verdict.sequence.reset();
  verdict.summary = "by the logs, " + told.summary;
  for (const Evidence& evidence : told.evidence)
    if (!evidence.entry && evidence.role == EvidenceRole::kReported &&
        told.kind != VerdictKind::kNoDump)
      verdict.evidence.push_back(evidence);
}

void cite_log(const JobLog& log, Verdict& verdict) {
  constexpr std::size_t kMostOfARank = 3;
  std::vector<Evidence> cited;
  for (const Rank rank : verdict.culprits) {
    std::vector<const LogEvent*> events;
    for (const LogEvent& event : log.events)
      if (std::ranges::binary_search(event.ranks, rank) &&
          event.kind != kWatchdog && event.kind != kCollectiveTimeout)
        events.push_back(&event);
    std::stable_partition(
        events.begin(), events.end(), [](const LogEvent* event) {
          return ends_a_process(*event) && !follows_from_others(event->message);
        });
    if (events.size() > kMostOfARank)
      events.resize(kMostOfARank);
    for (const LogEvent* const event : events)
      cited.push_back(
          {.rank = rank,
           .entry = std::nullopt,
           .role = EvidenceRole::kReported,
           .witness = Witness::kLog,
           .message = event->message +
                      (event->frame.empty() ? "" : " at " + event->frame),
           .where = fmt::format("{}:{}", event->file, event->line)});
  }
  verdict.evidence.insert(verdict.evidence.begin(), cited.begin(), cited.end());
}

}  // namespace postflight
