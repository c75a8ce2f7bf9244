// What logs tell is little: most ranks say what they gave up on, and the one at
// fault says nothing, or what it died of. So three things are looked for, and
// the first that is found is the verdict.
//
//   1. What a log says outright: a monitored barrier or a desync report names
//      the ranks that did not come.
//   2. What the rules of dumps find in the operations that the watchdogs name.
//      Their numbers have to fit together, and what they say is at most likely.
//   3. The first rank that ended by itself: an exception, a signal, an error of
//      its device, before any watchdog gave up. What follows from the end of
//      others (a lost connection, SIGTERM, an abort after a time-out) is none.
//
// A rank that says nothing is not accused: its log may not have been collected,
// or its launcher ended it before its own watchdog gave up. Only if its monitor
// said that it has nothing in progress, when all others wait, it is named, and
// that as possible.
#include "api/log_verdict.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "flight/diagnosis/diagnosis.h"
#include "flight/model/rank_set.h"

namespace postflight {
namespace {

using enum LogEventKind;

std::string place_of(const std::string& file, std::uint64_t line) {
  return fmt::format("{}:{}", file, line);
}

// Messages of ranks whose peers or launcher ended first.
bool follows_from_others(std::string_view message) {
  constexpr std::array<std::string_view, 24> kWords = {
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

// "OSError: shard-17 at data.py:88"
std::string event_text(const LogEvent& event) {
  constexpr std::size_t kMost = 120;
  std::string text = event.message.substr(0, kMost);
  if (event.message.size() > kMost)
    text += "...";
  return event.frame.empty() ? text : text + " at " + event.frame;
}

// Whose own watchdogs gave up, and when the first did.
struct Timeouts {
  explicit Timeouts(const JobLog& log) {
    for (const LogProgress& said : log.progress) {
      if (!said.timed_out)
        continue;
      if (said.rank)
        ranks.insert(*said.rank);
      if (said.time && (!first || said.time->nanoseconds < first->nanoseconds))
        first = said.time;
    }
  }

  bool came_before(const LogEvent& event) const {
    constexpr std::int64_t kMargin = kNanosecondsPerSecond;
    return event.time && first && event.time->has_year == first->has_year &&
           event.time->nanoseconds > first->nanoseconds + kMargin;
  }

  std::set<Rank> ranks;
  std::optional<LogTime> first;
};

// The first event by which a rank ended that does not follow from others.
std::optional<LogEvent> first_end(const JobLog& log, const Timeouts& timeouts,
                                  std::size_t world) {
  std::set<Rank> victims = timeouts.ranks;
  for (const LogEvent& event : log.events)
    if (event.kind == kCollectiveTimeout || event.kind == kGlooTimeout ||
        (ends_a_process(event) && follows_from_others(event.message)))
      victims.insert(event.ranks.begin(), event.ranks.end());
  std::vector<const LogEvent*> found;
  for (const LogEvent& event : log.events) {
    if (!ends_a_process(event) || event.ranks.empty() ||
        follows_from_others(event.message) || timeouts.came_before(event))
      continue;
    // A launcher says only that it failed.
    const bool only_status = event.kind == kWorkerFailed;
    if (std::ranges::any_of(event.ranks, [&](Rank rank) {
          return only_status ? victims.contains(rank)
                             : timeouts.ranks.contains(rank);
        }))
      continue;
    found.push_back(&event);
  }
  if (found.empty())
    return std::nullopt;
  const auto root = std::ranges::find(found, true, &LogEvent::first_cause);
  std::optional<LogEvent> first;
  if (root != found.end()) {
    // What it died of says more than its status.
    first = **root;
    for (const LogEvent* const event : found)
      if (event->ranks == first->ranks && event->kind != kWorkerFailed) {
        first = *event;
        break;
      }
  } else {
    const bool ordered = std::ranges::all_of(found, [&](const LogEvent* event) {
      return event->ranks == found[0]->ranks ||
             (event->time && found[0]->time &&
              event->time->has_year == found[0]->time->has_year) ||
             event->file == found[0]->file;
    });
    if (ordered)
      first = *found[0];
  }
  if (!first || first->ranks.size() * 2 > world)
    return std::nullopt;
  return first;
}

class Judge {
 public:
  Judge(const JobLog& log, const ReportedJob& reported,
        const Matching& matching, const Context& context)
      : log_(log),
        reported_(reported),
        job_(matching.job()),
        matching_(matching),
        context_(context),
        world_(matching.job().world()),
        timeouts_(log) {}

  Verdict judge() {
    Verdict verdict = diagnose(matching_, context_);
    keep_findings(verdict);
    const std::optional<LogEvent> end =
        first_end(log_, timeouts_, world_.size());
    if (!accuse_by_claim(verdict) && !accept(verdict, end) &&
        !(end && accuse_ended(*end, verdict)) && !accuse_idle(verdict) &&
        !call_stuck(verdict))
      call_unclear(verdict);
    verdict.confidence = std::min(verdict.confidence, Confidence::kLikely);
    verdict.pending = !reported_.waiting.empty();
    verdict.why.clear();
    settle_ranks(verdict);
    cite_lines(verdict);
    cite_log(log_, verdict);
    return verdict;
  }

 private:
  // Those that speak of dumps do not apply.
  static void keep_findings(Verdict& verdict) {
    constexpr std::array<std::string_view, 8> kKept = {
        "arguments_differ", "timeouts_differ", "skipped_operation",
        "extra_operation",  "wrong_group",     "undecided",
        "hosts_incomplete", "hosts_excess"};
    std::erase_if(verdict.findings, [&](const Finding& finding) {
      return std::ranges::find(kKept, finding.kind) == kKept.end();
    });
  }

  bool accuse_by_claim(Verdict& verdict) const {
    if (log_.claims.empty())
      return false;
    const LogClaim& first = log_.claims[0];
    std::set<Rank> named;
    for (const LogClaim& claim : log_.claims) {
      if (claim.kind != first.kind || claim.sequence != first.sequence)
        return false;
      named.insert(claim.ranks.begin(), claim.ranks.end());
    }
    // Everybody sees the same ranks missing, and those do not wait themselves.
    if (named.size() * 2 > std::max<std::size_t>(world_.size(), 2) ||
        !std::ranges::all_of(named, [&](Rank rank) {
          return std::ranges::binary_search(world_, rank) &&
                 !timeouts_.ranks.contains(rank);
        }))
      return false;
    start(VerdictKind::kNeverJoined, {named.begin(), named.end()}, verdict);
    verdict.confidence = Confidence::kLikely;
    const std::string ranks = ranks_label(verdict.culprits);
    if (first.kind == LoggedClaim::Kind::kBarrier)
      verdict.summary = fmt::format(
          "{} did not come to a monitored barrier, says {}", ranks,
          first.rank ? fmt::format("rank {}", first.rank->value) : "the log");
    else if (first.sequence)
      verdict.summary = fmt::format(
          "{} never joined collective #{}, says the desync report{}", ranks,
          *first.sequence,
          first.rank ? fmt::format(" of rank {}", first.rank->value) : "");
    else
      verdict.summary = fmt::format(
          "{} never joined a collective, says the desync report", ranks);
    verdict.sequence = first.sequence;
    for (const Rank rank : verdict.culprits)
      verdict.evidence.push_back({.rank = rank,
                                  .entry = std::nullopt,
                                  .role = EvidenceRole::kReported,
                                  .witness = Witness::kLog,
                                  .message = first.text,
                                  .where = place_of(first.file, first.line)});
    return true;
  }

  // Whether what the rules of dumps found holds for what logs can tell.
  bool accept(Verdict& verdict, const std::optional<LogEvent>& end) const {
    using enum VerdictKind;
    switch (verdict.kind) {
      case kNeverJoined:
        // Who died is a better explanation than who did not come.
        if (end && end->ranks != verdict.culprits &&
            std::ranges::none_of(end->ranks, [&](Rank rank) {
              return job_.find(rank) != nullptr;
            }))
          return false;
        if (!others_wait(verdict.culprits))
          return false;
        break;
      case kTypeMismatch:
      case kSizeMismatch:
      case kDtypeMismatch:
      case kDeviceStalled:
        if (!verdict.group || reported_.doubtful[verdict.group->value])
          return false;
        break;
      default:
        return false;
    }
    return !reported_.guessed;
  }

  // Whether few are accused, and all others whose logs there are wait. Else
  // the launcher may have ended ranks before their own watchdogs gave up, and
  // those that seem to wait for nothing wait elsewhere.
  bool others_wait(const std::vector<Rank>& accused) const {
    constexpr std::size_t kPart = 8;
    if (accused.size() > std::max<std::size_t>(1, world_.size() / kPart))
      return false;
    return std::ranges::all_of(log_.speakers, [&](Rank rank) {
      return std::ranges::binary_search(accused, rank) ||
             std::ranges::binary_search(reported_.waiting, rank) ||
             job_.find(rank) == nullptr;
    });
  }

  bool accuse_ended(const LogEvent& end, Verdict& verdict) const {
    const bool waited_for = !reported_.waiting.empty();
    const std::string others =
        waited_for
            ? fmt::format("; {} of {} ranks wait{}", reported_.waiting.size(),
                          world_.size(), wait_text())
            : "";
    start(VerdictKind::kNoDump, end.ranks, verdict);
    verdict.confidence = end.first_cause || end.earliest || waited_for
                             ? Confidence::kLikely
                             : Confidence::kPossible;
    verdict.headline = waited_for ? "" : "ENDED";
    verdict.summary =
        fmt::format("{} ended first: {}{}", ranks_label(verdict.culprits),
                    event_text(end), others);
    return true;
  }

  // Exactly one rank waits for nothing, and its monitor said so.
  bool accuse_idle(Verdict& verdict) const {
    constexpr std::size_t kFew = 4;
    if (reported_.guessed || world_.size() < kFew)
      return false;
    std::vector<Rank> idle;
    std::ranges::set_difference(world_, reported_.waiting,
                                std::back_inserter(idle));
    if (idle.size() != 1 || job_.find(idle[0]) == nullptr)
      return false;
    const std::string wait = wait_text();
    start(VerdictKind::kNeverJoined, idle, verdict);
    verdict.confidence = Confidence::kPossible;
    verdict.summary = fmt::format(
        "rank {} alone has nothing in progress, by its monitor, while {} of {} "
        "ranks wait{}",
        idle[0].value, reported_.waiting.size(), world_.size(), wait);
    return true;
  }

  bool call_stuck(Verdict& verdict) const {
    if (verdict.kind != VerdictKind::kAllJoinedStuck || !verdict.group)
      return false;
    const std::uint32_t group = verdict.group->value;
    if (!reported_.whole[group] || reported_.doubtful[group] ||
        reported_.guessed ||
        !std::ranges::includes(reported_.waiting, log_.speakers))
      return false;
    if (!log_.world_size)
      verdict.confidence = Confidence::kPossible;
    return true;
  }

  void call_unclear(Verdict& verdict) const {
    // The rules name both sides of a cycle, but logs do not show all waits.
    if (verdict.kind == VerdictKind::kOrderMismatch && !reported_.guessed) {
      verdict.kind = VerdictKind::kInconclusive;
      verdict.culprits.clear();
      verdict.also.clear();
      verdict.confidence = Confidence::kPossible;
      return;
    }
    const std::string wait = wait_text();
    std::vector<Rank> silent;
    std::ranges::set_difference(world_, reported_.waiting,
                                std::back_inserter(silent));
    verdict.kind = VerdictKind::kInconclusive;
    verdict.culprits.clear();
    verdict.also.clear();
    verdict.confidence = Confidence::kPossible;
    if (reported_.waiting.empty()) {
      start(VerdictKind::kInconclusive, {}, verdict);
      verdict.confidence = Confidence::kPossible;
      verdict.summary =
          !log_.events.empty()
              ? "the logs do not show which rank ended first, and no "
                "operation timed out in them"
              : fmt::format(
                    "the logs ({} line{}) say nothing of how the "
                    "job ended",
                    log_.lines, log_.lines == 1 ? "" : "s");
      return;
    }
    if (reported_.guessed)
      verdict.summary = fmt::format(
          "{} rank{} wait{}, but the lines have only their ranks in some "
          "group, not in the job",
          reported_.waiting.size(), reported_.waiting.size() == 1 ? "" : "s",
          wait);
    else if (silent.empty())
      verdict.summary =
          fmt::format("{} wait{}{}, and the logs do not show for whom",
                      ranks_label(world_), world_.size() == 1 ? "s" : "", wait);
    else
      verdict.summary = fmt::format(
          "{} of {} ranks wait{}, and the logs do not show for whom; {} {} no "
          "time-out",
          reported_.waiting.size(), world_.size(), wait, ranks_label(silent),
          silent.size() == 1 ? "reports" : "report");
  }

  // " in all_reduce #5 of default_pg", or nothing.
  std::string wait_text() const {
    std::map<std::pair<GroupId, std::int64_t>, std::size_t> waits;
    std::pair<GroupId, std::int64_t> most;
    std::size_t count = 0;
    for (std::uint32_t g = 0; g < job_.groups.size(); ++g)
      for (const Lane& lane : matching_.lanes({g}))
        if (const Slot* const slot = lane.first_pending()) {
          const std::pair<GroupId, std::int64_t> place{{g}, slot->sequence};
          if (const std::size_t now = ++waits[place]; now > count) {
            count = now;
            most = place;
          }
        }
    if (count == 0)
      return "";
    const auto& [group, sequence] = most;
    std::string_view name = "collective";
    for (const Lane& lane : matching_.lanes(group))
      if (const Slot* const slot = lane.find(sequence))
        name = matching_.operation(lane.dump->entries.call(slot->entry)).name;
    const Group& of = job_.group(group);
    const std::string_view text =
        job_.text(of.description == TextId{} ? of.name : of.description);
    return fmt::format(" in {} #{} of {}{}", name, sequence,
                       text.empty() ? "a group" : text,
                       waits.size() > 1 ? " and elsewhere" : "");
  }

  static void start(VerdictKind kind, std::vector<Rank> culprits,
                    Verdict& verdict) {
    verdict.kind = kind;
    verdict.culprits = std::move(culprits);
    std::ranges::sort(verdict.culprits);
    verdict.group.reset();
    verdict.operation.clear();
    verdict.sequence.reset();
    std::erase_if(verdict.evidence, [](const Evidence& evidence) {
      return evidence.role != EvidenceRole::kWaiting;
    });
    verdict.also.clear();
    std::erase_if(verdict.findings, [](const Finding& finding) {
      return !finding.kind.starts_with("hosts_");
    });
  }

  // Without a line on how far it came, a rank's state is not known.
  void settle_ranks(Verdict& verdict) const {
    std::map<Rank, RankStatus> known;
    for (RankStatus& one : verdict.ranks)
      known.emplace(one.rank, std::move(one));
    verdict.ranks.clear();
    std::set<Rank> all(world_.begin(), world_.end());
    all.insert(verdict.culprits.begin(), verdict.culprits.end());
    for (const Rank rank : all) {
      RankStatus status;
      status.rank = rank;
      status.state = RankState::kUnknown;
      if (const auto found = known.find(rank); found != known.end()) {
        status = std::move(found->second);
        status.stale = false;
      }
      const bool culprit = std::ranges::binary_search(verdict.culprits, rank);
      if (culprit)
        status.state = traits(verdict.kind).culprits;
      else if (job_.find(rank) == nullptr)
        status.state = RankState::kUnknown;
      else if (std::ranges::binary_search(reported_.waiting, rank) &&
               status.state != RankState::kMismatched)
        status.state = RankState::kWaiting;
      else if (status.state == RankState::kMissing ||
               status.state == RankState::kNoDump ||
               status.state == RankState::kStalled)
        status.state = RankState::kUnknown;
      verdict.ranks.push_back(std::move(status));
    }
  }

  // The line of each entry that is evidence.
  void cite_lines(Verdict& verdict) const {
    const auto cite = [&](std::vector<Evidence>& all) {
      for (Evidence& evidence : all) {
        evidence.witness = Witness::kLog;
        const RankDump* const dump = job_.find(evidence.rank);
        if (!evidence.entry || dump == nullptr)
          continue;
        const GroupId group =
            job_.tables.call(dump->entries.call(*evidence.entry)).group;
        const auto source = reported_.sources.find({evidence.rank, group});
        if (source == reported_.sources.end())
          continue;
        const LogProgress& said = log_.progress[source->second];
        evidence.message = said.text;
        evidence.where = place_of(said.file, said.line);
      }
    };
    cite(verdict.evidence);
    for (FurtherFault& other : verdict.also)
      cite(other.evidence);
  }

  const JobLog& log_;
  const ReportedJob& reported_;
  const Job& job_;
  const Matching& matching_;
  const Context& context_;
  std::vector<Rank> world_;
  Timeouts timeouts_;
};

}  // namespace

Verdict judge_logs(const JobLog& log, const ReportedJob& reported,
                   const Matching& matching, const Context& context) {
  return Judge(log, reported, matching, context).judge();
}

void explain_missing(const JobLog& log, const Job& job, Verdict& verdict) {
  if (verdict.kind != VerdictKind::kInconclusive || !verdict.pending)
    return;
  const std::optional<LogEvent> end =
      first_end(log, Timeouts(log), job.world().size());
  const std::vector<Rank> missing = job.without_dump();
  if (!end || !std::ranges::includes(missing, end->ranks))
    return;
  verdict.kind = VerdictKind::kNoDump;
  verdict.confidence = Confidence::kLikely;
  verdict.culprits = end->ranks;
  // A file that can't be read was left all the same.
  const bool left_none = std::ranges::none_of(
      verdict.culprits,
      [&job](Rank rank) { return job.skipped_of(rank) != nullptr; });
  verdict.summary = fmt::format(
      "{} {}ended first, by {} log{}: {}; others wait",
      ranks_label(verdict.culprits), left_none ? "left no dump and " : "",
      verdict.culprits.size() == 1 ? "its" : "their",
      verdict.culprits.size() == 1 ? "" : "s", event_text(*end));
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
           .where = place_of(event->file, event->line)});
  }
  verdict.evidence.insert(verdict.evidence.begin(), cited.begin(), cited.end());
}

}  // namespace postflight
