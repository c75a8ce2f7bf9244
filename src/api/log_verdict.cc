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
#include "joblog/ending.h"

namespace postflight {
namespace {

using enum LogEventKind;

std::string place_of(const std::string& file, std::uint64_t line) {
  return fmt::format("{}:{}", file, line);
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
    if (!(end && explains_claims(*end) && accuse_ended(*end, verdict)) &&
        !accuse_by_report(verdict) && !accuse_by_barrier(verdict) &&
        !accept(verdict, end) && !(end && accuse_ended(*end, verdict)) &&
        !accuse_silent(verdict) && !accuse_idle(verdict) &&
        !call_stuck(verdict))
      call_unclear(verdict);
    verdict.confidence = std::min(verdict.confidence, Confidence::kLikely);
    verdict.pending = !reported_.waiting.empty();
    verdict.why.clear();
    settle_ranks(verdict);
    cite_lines(verdict);
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

  // Who died is a better explanation than who did not come to a barrier.
  bool explains_claims(const LogEvent& end) const {
    return std::ranges::any_of(
               log_.claims,
               [](const LogClaim& claim) {
                 return claim.kind == LoggedClaim::Kind::kBarrier ||
                        claim.kind == LoggedClaim::Kind::kReached;
               }) &&
           std::ranges::none_of(end.ranks, [&](Rank rank) {
             return timeouts_.victims.contains(rank);
           });
  }

  // Whether places up to this one can only be those in the group of all ranks:
  // another has at most half of them.
  bool is_of_all(Rank highest) const {
    return (std::int64_t{highest.value} + 1) * 2 >
           static_cast<std::int64_t>(world_.size());
  }

  // TORCH_NCCL_DESYNC_DEBUG
  bool accuse_by_report(Verdict& verdict) const {
    using enum LoggedClaim::Kind;
    const LogClaim* first = nullptr;
    std::set<Rank> named;
    for (const LogClaim& claim : log_.claims) {
      // Then an operation is at fault that some have left and others have not.
      if (claim.kind == kUnfinished)
        return false;
      if (claim.kind != kDesync)
        continue;
      first = first == nullptr ? &claim : first;
      const Rank highest =
          std::max(claim.places.back(), claim.highest.value_or(Rank{-1}));
      if (claim.sequence != first->sequence ||
          (claim.rank && claim.place && claim.rank != claim.place) ||
          !is_of_all(highest))
        return false;
      named.insert(claim.places.begin(), claim.places.end());
    }
    // Several may lag because their devices wait for one that is not named.
    if (first == nullptr || named.size() > 1 || !may_accuse(named))
      return false;
    const std::string text =
        first->sequence
            ? fmt::format("never joined collective #{}", *first->sequence)
            : "never joined a collective";
    accuse(
        named, *first,
        fmt::format(
            "{}, says the desync report{}", text,
            first->rank ? fmt::format(" of rank {}", first->rank->value) : ""),
        verdict);
    verdict.sequence = first->sequence;
    return true;
  }

  // A monitored barrier, alone or before each call with
  // TORCH_DISTRIBUTED_DEBUG=DETAIL: rank 0 of the group lists who did not come,
  // and those that came say that it did not answer. Who came to another one is
  // not at fault, and the group has no name: only of that of all ranks it is
  // known which ranks its places are.
  bool accuse_by_barrier(Verdict& verdict) const {
    using enum LoggedClaim::Kind;
    const LogClaim* first = nullptr;
    std::set<Rank> missing;
    std::set<Rank> came;
    Rank highest{-1};
    bool unanswered = false;
    for (const LogClaim& claim : log_.claims) {
      if (claim.kind != kBarrier && claim.kind != kReached)
        continue;
      if (claim.rank && claim.place && claim.rank != claim.place)
        return false;  // there are other groups
      if (claim.place)
        came.insert(*claim.place);
      highest = std::max(highest, claim.places.back());
      unanswered |= claim.kind == kReached;
      if (claim.kind == kReached)
        continue;
      missing.insert(claim.places.begin(), claim.places.end());
      first = first == nullptr ? &claim : first;
    }
    std::erase_if(missing, [&](Rank rank) { return came.contains(rank); });
    const bool all =
        is_of_all(highest) || came.size() + missing.size() == world_.size();
    if (first == nullptr && unanswered && all && !came.contains(Rank{0}) &&
        came.size() + 1 == world_.size()) {
      const auto reached =
          std::ranges::find(log_.claims, kReached, &LogClaim::kind);
      missing = {Rank{0}};
      if (!may_accuse(missing))
        return false;
      accuse(missing, *reached,
             "did not answer in a monitored barrier to which all others came",
             verdict);
      return true;
    }
    // Of several, some may wait elsewhere for the others.
    if (first == nullptr || !all || missing.size() > 1 || !may_accuse(missing))
      return false;
    accuse(missing, *first,
           fmt::format("did not come to a monitored barrier, says {}",
                       first->rank ? fmt::format("rank {}", first->rank->value)
                                   : "the log"),
           verdict);
    return true;
  }

  // Not those that wait themselves.
  bool may_accuse(const std::set<Rank>& named) const {
    return !named.empty() &&
           named.size() * 2 <= std::max<std::size_t>(world_.size(), 2) &&
           std::ranges::all_of(named, [&](Rank rank) {
             return std::ranges::binary_search(world_, rank) &&
                    !timeouts_.victims.contains(rank);
           });
  }

  void accuse(const std::set<Rank>& named, const LogClaim& claim,
              std::string_view what, Verdict& verdict) const {
    start(VerdictKind::kNeverJoined, {named.begin(), named.end()}, verdict);
    verdict.confidence = Confidence::kLikely;
    verdict.summary = fmt::format("{} {}", ranks_label(verdict.culprits), what);
    for (const Rank rank : verdict.culprits)
      verdict.evidence.push_back({.rank = rank,
                                  .entry = std::nullopt,
                                  .role = EvidenceRole::kReported,
                                  .witness = Witness::kLog,
                                  .message = claim.text,
                                  .where = place_of(claim.file, claim.line)});
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

  // All others gave up, and these wrote on for longer than it took the others:
  // if they had waited, they would have given up, too.
  bool accuse_silent(Verdict& verdict) const {
    constexpr std::size_t kPart = 8;
    // Watchdogs look every 100 ms, and monitors every second.
    constexpr std::int64_t kMargin = 2 * kNanosecondsPerSecond;
    if (reported_.guessed || !timeouts_.last || world_.size() < 2)
      return false;
    std::vector<Rank> silent;
    std::ranges::set_difference(world_, timeouts_.victims,
                                std::back_inserter(silent));
    const std::int64_t margin = std::max(
        kMargin,
        elapsed(timeouts_.first->nanoseconds, timeouts_.last->nanoseconds));
    if (silent.empty() ||
        silent.size() > std::max<std::size_t>(1, world_.size() / kPart) ||
        !std::ranges::all_of(silent, [&](Rank rank) {
          const auto heard = log_.heard.find(rank);
          return heard != log_.heard.end() &&
                 is_later(heard->second, *timeouts_.last, margin);
        }))
      return false;
    const std::string wait = wait_text();
    start(VerdictKind::kNeverJoined, silent, verdict);
    verdict.confidence =
        silent.size() == 1 ? Confidence::kLikely : Confidence::kPossible;
    verdict.summary = fmt::format(
        "{} went on without a time-out after all others had given up{}{}",
        ranks_label(verdict.culprits), wait.empty() ? "" : " waiting", wait);
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
    // Logs have neither dtypes nor what was called before.
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

}  // namespace postflight
