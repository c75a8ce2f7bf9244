#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/units.h"
#include "flight/diagnosis/rules.h"
#include "flight/model/entry.h"
#include "flight/model/rank_set.h"

namespace postflight {
namespace {

void add_unreadable(const Case& facts, std::vector<Finding>& findings) {
  const std::vector<Rank> missing = facts.job.without_dump();
  for (const SkippedFile& file : facts.job.skipped)
    if (!file.empty && std::ranges::binary_search(missing, Rank{file.rank}))
      findings.push_back(
          {"unreadable_dump", Severity::kWarning,
           fmt::format("the dump of rank {} can't be read, so how far that "
                       "rank came is not known: {}",
                       file.rank, file.reason),
           file.file});
}

void add_missing_dumps(const Case& facts, const Verdict& verdict,
                       std::vector<Finding>& findings) {
  std::vector<Rank> missing = facts.job.without_dump();
  for (const SkippedFile& file : facts.job.skipped)
    if (!file.empty)
      std::erase(missing, Rank{file.rank});
  std::vector<Rank> empty;
  for (const SkippedFile& file : facts.job.skipped)
    if (file.empty && file.rank >= 0)
      empty.push_back({file.rank});
  std::ranges::sort(empty);
  if (missing.empty() || (missing == verdict.culprits && empty.empty()))
    return;
  std::string message =
      fmt::format("{} left no dump", Case::ranks_text(missing));
  if (!empty.empty())
    message +=
        fmt::format("; the file{} of {} {} empty", empty.size() == 1 ? "" : "s",
                    Case::ranks_text(empty), empty.size() == 1 ? "is" : "are");
  findings.push_back({"missing_dumps", Severity::kWarning, message, ""});
}

void add_versions(const Case& facts, std::vector<Finding>& findings) {
  std::map<std::string_view, std::vector<Rank>> versions;
  std::map<std::string_view, std::vector<Rank>> libraries;
  for (const RankDump& dump : facts.job.ranks) {
    versions[facts.job.text(dump.version)].push_back(dump.rank);
    libraries[facts.job.text(dump.library)].push_back(dump.rank);
  }
  const auto tell = [&](const auto& all, std::string_view what,
                        std::string_view kind) {
    if (all.size() < 2)
      return;
    std::vector<std::string> parts;
    parts.reserve(all.size());
    for (const auto& [version, ranks] : all)
      parts.push_back(fmt::format("{} on {}",
                                  version.empty() ? "none" : version,
                                  Case::ranks_text(ranks)));
    findings.push_back(
        {std::string(kind), Severity::kWarning,
         fmt::format("{} differ: {}", what, fmt::join(parts, ", ")), ""});
  };
  tell(versions, "recorder versions", "versions_differ");
  tell(libraries, "versions of the communication library", "libraries_differ");
}

// The operation whose watchdog time-out comes first, and time-outs that differ.
void add_timeouts(const Case& facts, std::vector<Finding>& findings) {
  std::optional<std::int64_t> first;
  const Wait* wait = nullptr;
  std::int64_t timeout = 0;
  Rank rank;
  std::map<GroupId, std::set<std::int64_t>> by_group;
  for (const Wait& one : facts.graph.waits)
    for (const Wait::Waiter& waiter : one.waiting) {
      const RankDump& dump = *facts.job.find(facts.graph.world[waiter.rank]);
      const Entry entry = dump.entries[waiter.entry];
      const Call& call = facts.job.call(entry);
      if (call.timeout_ms <= 0 || entry.created <= 0 ||
          call.timeout_ms > 1'000'000'000)
        continue;
      by_group[one.group].insert(call.timeout_ms);
      std::int64_t end = 0;
      if (__builtin_add_overflow(entry.created, call.timeout_ms * 1'000'000,
                                 &end))
        continue;
      if (!first || end < *first) {
        first = end;
        wait = &one;
        timeout = call.timeout_ms;
        rank = dump.rank;
      }
    }
  if (wait != nullptr)
    findings.push_back(
        {"first_timeout", Severity::kNote,
         fmt::format("rank {} reaches its watchdog time-out first, {} after it "
                     "enqueued {}",
                     rank.value,
                     human_duration(std::chrono::milliseconds(timeout)),
                     facts.wait_text(*wait)),
         ""});
  for (const auto& [group, timeouts] : by_group)
    if (timeouts.size() > 1)
      findings.push_back(
          {"timeouts_differ", Severity::kWarning,
           fmt::format(
               "ranks of {} have different time-outs: {} and {}",
               facts.group_text(group),
               human_duration(std::chrono::milliseconds(*timeouts.begin())),
               human_duration(std::chrono::milliseconds(*timeouts.rbegin()))),
           ""});
}

// Operations that the watchdog retired before they completed.
void add_aborted(const Case& facts, std::vector<Finding>& findings) {
  std::vector<Rank> ranks;
  std::uint64_t count = 0;
  for (const RankDump& dump : facts.job.ranks) {
    const std::uint64_t before = count;
    for (std::size_t i = 0; i < dump.entries.size(); ++i) {
      if (!dump.entries.retired(i) ||
          dump.entries.state(i) == State::kCompleted)
        continue;
      const Entry entry = dump.entries[i];
      if (facts.matching.completes(entry) &&
          facts.job.call(entry).point_to_point == 0 &&
          facts.matching.operation(entry.call).kind !=
              OperationKind::kCoalesced)
        ++count;
    }
    if (count != before)
      ranks.push_back(dump.rank);
  }
  if (count > 0)
    findings.push_back(
        {"aborted", Severity::kWarning,
         fmt::format("the watchdog gave up on {} operation{} of "
                     "{} before completion",
                     count, count == 1 ? "" : "s", Case::ranks_text(ranks)),
         ""});
}

// Ranks whose last activity is long before that of the others.
void add_silence(const Case& facts, std::vector<Finding>& findings) {
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < facts.job.ranks.size(); ++i)
    if (facts.matching.latest(i) > 0)
      times.push_back(facts.matching.latest(i));
  if (times.size() < 3)
    return;
  std::ranges::sort(times);
  const std::int64_t typical = times[times.size() / 2];
  for (std::size_t i = 0; i < facts.job.ranks.size(); ++i) {
    const std::int64_t own = facts.matching.latest(i);
    if (own > 0 && elapsed(own, typical) > 60 * kNanosecondsPerSecond)
      findings.push_back(
          {"silent", Severity::kWarning,
           fmt::format(
               "the last activity of rank {} is {} before that of the others",
               facts.job.ranks[i].rank.value,
               human_duration(std::chrono::nanoseconds(elapsed(own, typical)))),
           facts.job.ranks[i].file});
  }
}

// Dumps whose time range does not overlap with the others: they are left over
// from another run, or a clock is wrong.
void add_strangers(const Case& facts, std::vector<Finding>& findings) {
  constexpr std::int64_t kApart = 600 * kNanosecondsPerSecond;
  struct Span {
    std::int64_t first;
    std::int64_t last;
    const RankDump* dump;
  };
  std::vector<Span> spans;
  for (std::size_t i = 0; i < facts.job.ranks.size(); ++i) {
    const RankDump& dump = facts.job.ranks[i];
    if (!dump.entries.empty() && dump.entries.created(0) > 0)
      spans.push_back(
          {dump.entries.created(0), facts.matching.latest(i), &dump});
  }
  if (spans.size() < 3)
    return;
  const std::size_t middle = spans.size() / 2;
  std::ranges::sort(spans, {}, &Span::first);
  const std::int64_t typical_first = spans[middle].first;
  std::ranges::sort(spans, {}, &Span::last);
  const std::int64_t typical_last = spans[middle].last;
  std::ranges::sort(spans, {}, [](const Span& one) { return one.dump->rank; });
  for (const Span& span : spans) {
    const bool after = elapsed(typical_last, span.first) > kApart;
    if (!after && elapsed(span.last, typical_first) <= kApart)
      continue;
    findings.push_back(
        {"another_time", Severity::kWarning,
         fmt::format(
             "the dump of rank {} {}; is it from another job?",
             span.dump->rank.value,
             after ? fmt::format("starts {} after the others end",
                                 human_duration(std::chrono::nanoseconds(
                                     elapsed(typical_last, span.first))))
                   : fmt::format("ends {} before the others start",
                                 human_duration(std::chrono::nanoseconds(
                                     elapsed(span.last, typical_first))))),
         span.dump->file});
  }
}

void add_rings(const Case& facts, std::vector<Finding>& findings) {
  std::vector<Rank> short_rings;
  for (const RankDump& dump : facts.job.ranks) {
    if (dump.entries.empty() || dump.entries[0].record_id == 0)
      continue;
    const std::int64_t span = elapsed(
        dump.entries.created(0), dump.entries.created(dump.entries.size() - 1));
    if (span >= 0 && span < 10 * kNanosecondsPerSecond)
      short_rings.push_back(dump.rank);
  }
  if (!short_rings.empty() && !facts.graph.waits.empty())
    findings.push_back(
        {"ring_short", Severity::kNote,
         fmt::format(
             "the ring buffer of {} covers less than 10 s, so the first "
             "difference may have been overwritten: raise "
             "TORCH_FR_BUFFER_SIZE (a number of entries, not bytes)",
             Case::ranks_text(short_rings)),
         ""});
}

void add_advice(const Case& facts, const Verdict& verdict,
                std::vector<Finding>& findings) {
  const bool stacks =
      std::ranges::any_of(facts.job.ranks, [](const RankDump& dump) {
        for (std::size_t i = 0; i < dump.entries.size(); ++i)
          if (dump.entries[i].stack != StackId{})
            return true;
        return false;
      });
  if (!stacks && verdict.stands())
    findings.push_back({"no_stacks", Severity::kNote,
                        "the dumps have no stack traces, so code locations are "
                        "unknown: set TORCH_INCLUDE_STACK_TRACE=1",
                        ""});
  bool starts = false;
  for (std::size_t i = 0; i < facts.job.ranks.size(); ++i)
    starts |= facts.matching.has_starts(i);
  if (verdict.kind == VerdictKind::kAllJoinedStuck && !starts)
    findings.push_back(
        {"no_start_times", Severity::kNote,
         "without start times, a stalled device cannot be identified: set "
         "TORCH_NCCL_ENABLE_TIMING=1",
         ""});
}

// What a healthy verdict does not prove.
void add_reservation(const Verdict& verdict, std::vector<Finding>& findings) {
  if (verdict.healthy())
    findings.push_back(
        {"nothing_pending", Severity::kNote,
         "no operation was in progress; that does not rule out a rank that is "
         "stuck on its host, or blocked before its next operation was recorded",
         ""});
}

void add_divergences(const Case& facts, const Verdict& verdict,
                     std::vector<Finding>& findings) {
  for (const Divergence& divergence : facts.divergences) {
    if (verdict.group == divergence.group &&
        verdict.sequence == divergence.sequence)
      continue;
    findings.push_back(
        {"arguments_differ", Severity::kWarning,
         fmt::format("{} {} {} #{} of {}",
                     Case::ranks_text(divergence.disagreement.suspects),
                     divergence.disagreement.text,
                     facts.job
                         .operation(facts.job.tables.call(
                             divergence.disagreement.majority_call))
                         .name,
                     divergence.sequence, facts.group_text(divergence.group)),
         ""});
  }
}

}  // namespace

void add_findings(const Case& facts, Verdict& verdict) {
  std::vector<Finding>& findings = verdict.findings;
  add_unreadable(facts, findings);
  add_missing_dumps(facts, verdict, findings);
  add_divergences(facts, verdict, findings);
  if (verdict.kind != VerdictKind::kInProgress) {
    add_timeouts(facts, findings);
    add_silence(facts, findings);
  }
  add_aborted(facts, findings);
  add_strangers(facts, findings);
  add_versions(facts, findings);
  add_rings(facts, findings);
  add_advice(facts, verdict, findings);
  add_reservation(verdict, findings);
  findings.insert(findings.end(), facts.job.findings.begin(),
                  facts.job.findings.end());
}

}  // namespace postflight
