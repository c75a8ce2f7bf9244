#include "api/trace.h"

#include "api/log_verdict.h"
#include "api/log_witness.h"
#include "api/stacks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/glob.h"
#include "base/units.h"
#include "flight/diagnosis/diagnosis.h"
#include "flight/model/dump_files.h"
#include "flight/model/rank_set.h"
#include "joblog/host_map.h"
#include "joblog/job_log.h"
#include "joblog/reported_job.h"

namespace postflight {
namespace {

// Whether an argument that is no file can be a node list. A single word is not:
// it is rather the misspelt name of a file, which must not become a host.
bool is_node_list(std::string_view given) {
  if (given.find('/') != given.npos)
    return false;
  const std::size_t colon = given.rfind(':');
  const bool slots =
      colon != given.npos && colon + 1 < given.size() &&
      given.find_first_not_of("0123456789", colon + 1) == given.npos;
  return slots || given.find_first_of("[], \t\n=") != given.npos;
}

// `given` is the name of a file or, if there is none, a node list itself.
Result<std::string> host_list_text(const std::string& given) {
  // A long node list is not a valid file name.
  std::error_code error;
  if (const std::filesystem::path path = input_path(given);
      std::filesystem::exists(path, error)) {
    const MappedFile file = TRY(MappedFile::open(path));
    return std::string(as_text(file.bytes()));
  }
  if (!is_node_list(given))
    return fail(ErrorKind::kUsage,
                "{}: no such file; give a hostfile, or a node list with "
                "tasks per node, such as 'node[1-4] x8'",
                given);
  return given;
}

// What a list of hosts does not say of the job's ranks.
void check_hosts(const HostMap& map, std::span<const Rank> world,
                 const std::string& source, Job& job) {
  std::vector<Rank> unknown;
  for (const Rank rank : world)
    if (map.host_of(rank).empty())
      unknown.push_back(rank);
  if (!unknown.empty())
    job.findings.push_back(
        {"hosts_incomplete", Severity::kWarning,
         fmt::format("the host list has {} of the job's {} ranks; it does not "
                     "say where {} ran",
                     world.size() - unknown.size(), world.size(),
                     ranks_label(unknown)),
         source});
  else if (map.size() > world.size())
    job.findings.push_back(
        {"hosts_excess", Severity::kWarning,
         fmt::format("the host list has {} ranks, but the job has {}; is it of "
                     "another job?",
                     map.size(), world.size()),
         source});
}

Result<HostMap> place_ranks(const std::string& hosts, const Context& context,
                            Job& job) {
  if (hosts.empty())
    return HostMap();
  const std::vector<Rank> world = job.world();
  const std::string text = TRY(host_list_text(hosts));
  HostMap map =
      TRY(read_host_map(text, world.size(), context.limits).in("--hosts"));
  for (const Rank rank : world)
    if (const std::string_view host = map.host_of(rank); !host.empty())
      job.hosts[rank] = host;
  check_hosts(map, world, hosts, job);
  return map;
}

std::string speaker(const LogEvent& event) {
  if (event.ranks.size() > 1)
    return fmt::format("ranks {}: ", rank_set_text(event.ranks));
  if (event.rank)
    return fmt::format("rank {}: ", event.rank->value);
  return event.host.empty() ? "" : event.host + ": ";
}

Finding log_finding(const LogEvent& event) {
  std::string message = speaker(event) + event.message;
  if (!event.frame.empty())
    message += " at " + event.frame;
  if (event.of_earlier_attempt)
    message += "; in an earlier attempt";
  if (event.earliest)
    message += "; the first sign of trouble in the logs";
  return {.kind = fmt::format("log_{}", log_event_kind_name(event.kind)),
          .severity = event.earliest ? Severity::kError : Severity::kWarning,
          .message = std::move(message),
          .where = fmt::format("{}:{}", event.file, event.line)};
}

// The files of a folder of logs, those of its folders included, such as that
// of torchrun's --log-dir.
Result<std::vector<std::string>> files_in(const std::string& folder) {
  constexpr std::size_t kMostFiles = 1'000'000;
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(
           folder, std::filesystem::directory_options::skip_permission_denied,
           error);
       !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code unknown;
    if (!entry->path().filename().native().starts_with('.') &&
        entry->is_regular_file(unknown))
      files.push_back(entry->path().native());
    if (files.size() > kMostFiles)
      return fail(ErrorKind::kRefused,
                  "{}: more than {} files; give the logs of one job", folder,
                  kMostFiles);
  }
  if (error)
    return fail(ErrorKind::kIo, "{}: {}", folder, error.message());
  if (files.empty())
    return fail(ErrorKind::kIo, "{}: no files in this folder", folder);
  std::ranges::sort(files);
  return files;
}

Result<JobLog> read_logs(std::span<const std::string> given,
                         const HostMap& hosts, const Context& context) {
  std::vector<std::string> files;
  for (const std::string& path : given)
    for (std::string& found : TRY(expand_path(input_path(path)))) {
      std::error_code unknown;
      if (std::filesystem::is_directory(found, unknown))
        std::ranges::move(TRY(files_in(found)), std::back_inserter(files));
      else
        files.push_back(std::move(found));
    }
  // One that is given twice would count twice.
  std::set<std::string_view> seen;
  std::erase_if(files, [&](const std::string& file) {
    return !seen.insert(file).second;
  });
  return read_job_logs(files, {.hosts = hosts.size() > 0 ? &hosts : nullptr,
                               .limits = context.limits});
}

// Puts what the logs say before the other findings, the earliest event first.
void add_log(const JobLog& log, Verdict& verdict) {
  // A job of a thousand ranks can fail in as many ways; the first events are
  // closest to the cause.
  constexpr std::size_t kMostEvents = 50;
  std::vector<Finding> found;
  for (const LogEvent& event :
       std::span(log.events).first(std::min(log.events.size(), kMostEvents)))
    found.push_back(log_finding(event));
  found.insert(found.end(), log.findings.begin(), log.findings.end());
  verdict.findings.insert(verdict.findings.begin(), found.begin(), found.end());
}

}  // namespace

namespace {

// Where the ranks at fault ran and what their processes do.
void cite_others(const HostMap& hosts,
                 const std::optional<StackSnapshot>& stacks, Verdict& verdict) {
  constexpr std::size_t kMost = 64;
  for (std::size_t i = 0; i < verdict.culprits.size() && i < kMost; ++i) {
    const Rank rank = verdict.culprits[i];
    if (const std::string_view host = hosts.host_of(rank); !host.empty())
      verdict.evidence.push_back({.rank = rank,
                                  .entry = std::nullopt,
                                  .role = EvidenceRole::kReported,
                                  .witness = Witness::kHosts,
                                  .message = fmt::format("ran on {}", host)});
    if (!stacks)
      continue;
    for (const ProcessStacks* const process :
         processes_of_rank(&*stacks, rank.value))
      if (const ThreadStack* const main = process->main_thread();
          main != nullptr && !main->frames.empty())
        verdict.evidence.push_back(
            {.rank = rank,
             .entry = std::nullopt,
             .role = EvidenceRole::kReported,
             .witness = Witness::kStacks,
             .message = fmt::format("is in {}", place_text(main->frames)),
             .where = process->source});
  }
}

// What the logs say of ranks that the job does not have, or of another time.
void compare_with_job(const JobLog& log, const Job& job, Verdict& verdict) {
  const std::vector<Rank> world = job.world();
  std::set<Rank> strangers;
  for (const Rank rank : log.speakers)
    if (!std::ranges::binary_search(world, rank))
      strangers.insert(rank);
  for (const LogEvent& event : log.events)
    for (const Rank rank : event.ranks)
      if (!std::ranges::binary_search(world, rank))
        strangers.insert(rank);
  if (!strangers.empty())
    verdict.findings.push_back(
        {"log_of_another_job", Severity::kWarning,
         fmt::format("the logs speak of {}, which the dumps do not know; are "
                     "they of another job?",
                     ranks_label(std::vector<Rank>(strangers.begin(),
                                                   strangers.end()))),
         ""});
  // Logs are in local time, of any zone.
  constexpr std::int64_t kApart =
      std::int64_t{36} * 3600 * kNanosecondsPerSecond;
  std::int64_t dumped = 0;
  for (const RankDump& dump : job.ranks)
    if (!dump.entries.empty())
      dumped = std::max(dumped, dump.entries.created(dump.entries.size() - 1));
  std::int64_t logged = 0;
  const auto add = [&logged, dumped](const std::optional<LogTime>& time) {
    if (!time)
      return;
    // Of a time without a year, the year that speaks for this job.
    const LogTime whole =
        time->has_year ? *time : with_year(*time, {dumped, true});
    logged = std::max(logged, whole.nanoseconds);
  };
  for (const LogEvent& event : log.events)
    add(event.time);
  for (const LogProgress& said : log.progress)
    add(said.time);
  if (logged == 0 || dumped == 0)
    return;
  const std::int64_t apart = elapsed(dumped, logged);
  if (apart > kApart || apart < -kApart)
    verdict.findings.push_back(
        {"log_of_another_time", Severity::kWarning,
         fmt::format(
             "the last time in the logs is {} {} the last in the dumps; are "
             "they of another job?",
             human_duration(std::chrono::nanoseconds(
                 apart < 0 ? elapsed(logged, dumped) : apart)),
             apart < 0 ? "before" : "after"),
         ""});
}

Result<HostMap> read_hosts_of(const JobLog& log, const JobEvidence& evidence,
                              const Context& context, Job& job) {
  for (const LogEvent& event : log.events)
    if (event.ranks.size() == 1 && !event.host.empty())
      job.hosts.try_emplace(event.ranks[0], event.host);
  return place_ranks(evidence.hosts, context, job);
}

Result<Investigation> investigate_logs(const JobEvidence& evidence,
                                       const Context& context) {
  // Logs of torchrun need to know which host has which ranks.
  HostMap hosts;
  if (!evidence.hosts.empty()) {
    const std::string text = TRY(host_list_text(evidence.hosts));
    hosts =
        TRY(read_host_map(text, std::nullopt, context.limits).in("--hosts"));
  }
  const JobLog log = TRY(read_logs(evidence.logs, hosts, context));
  ReportedJob reported = make_reported_job(log);
  hosts = TRY(read_hosts_of(log, evidence, context, reported.job));
  Investigation found(std::move(reported.job), context);
  found.verdict = judge_logs(log, reported, found.matching, context);
  cite_log(log, found.verdict);
  add_log(log, found.verdict);
  if (!evidence.stacks.empty()) {
    found.stacks = TRY(read_stack_files(evidence.stacks, context));
    std::ranges::copy(found.stacks->findings,
                      std::back_inserter(found.verdict.findings));
  }
  cite_others(hosts, found.stacks, found.verdict);
  return found;
}

}  // namespace

Result<Investigation> investigate(const JobEvidence& evidence,
                                  const Context& context) {
  if (evidence.dumps.empty() && !evidence.logs.empty())
    return investigate_logs(evidence, context);
  Job job = TRY(load_job(evidence.dumps, evidence.load, context));
  const HostMap hosts = TRY(place_ranks(evidence.hosts, context, job));
  Investigation found(std::move(job), context);
  found.verdict = diagnose(found.matching, context);
  if (!evidence.logs.empty()) {
    const JobLog log = TRY(read_logs(evidence.logs, hosts, context));
    consult_logs(log, found.job(), context, found.verdict);
    cite_log(log, found.verdict);
    add_log(log, found.verdict);
    compare_with_job(log, found.job(), found.verdict);
  }
  if (!evidence.stacks.empty()) {
    found.stacks = TRY(read_stack_files(evidence.stacks, context));
    std::ranges::copy(found.stacks->findings,
                      std::back_inserter(found.verdict.findings));
  }
  cite_others(hosts, found.stacks, found.verdict);
  return found;
}

bool is_problem(const Verdict& verdict, bool strict) {
  if (strict && has_problem(verdict.findings, strict))
    return true;
  switch (traits(verdict.kind).action) {
    case Action::kNever:
      return false;
    case Action::kIfStrict:
      return strict;
    case Action::kIfPending:
      return verdict.pending || has_problem(verdict.findings);
    case Action::kAlways:
      return true;
  }
  return true;
}

Result<std::vector<std::string>> default_dumps(const Environment& environment) {
  const std::vector<std::string> prefixes = default_dump_prefixes(environment);
  for (const std::string& prefix : prefixes) {
    const std::vector<std::string> pattern = {prefix + "*"};
    if (const Result<DumpFiles> found = find_dump_files(pattern);
        found && !found->files.empty())
      return pattern;
  }
  return fail(ErrorKind::kUsage,
              "no dumps in the usual places ({}*); give the folder they are in",
              fmt::join(prefixes, "*, "));
}

Result<std::vector<GroupId>> find_groups(const Job& job,
                                         std::string_view name) {
  std::set<std::string_view> names;
  std::vector<GroupId> found;
  for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
    const Group& group = job.groups[g];
    if (job.text(group.name) == name || job.text(group.description) == name)
      found.push_back({g});
    names.insert(job.text(group.description != TextId{} ? group.description
                                                        : group.name));
  }
  if (!found.empty()) {
    std::ranges::stable_sort(
        found,
        {}, [&](GroupId id) -> const auto& { return job.group(id).members; });
    return found;
  }
  return fail(ErrorKind::kUsage, "there is no group {} in this job, only {}",
              name, fmt::join(names, ", "));
}

Result<Rank> find_rank(const Job& job, std::int32_t number) {
  const std::vector<Rank> world = job.world();
  if (!std::ranges::binary_search(world, Rank{number}))
    return fail(ErrorKind::kUsage, "there is no rank {} in this job, only {}",
                number, rank_set_text(world));
  return Rank{number};
}

std::vector<std::string> culprit_hosts(const Job& job, const Verdict& verdict) {
  std::set<std::string_view> hosts;
  for (const Rank culprit : verdict.culprits)
    if (const std::string_view host = job.host_of(culprit); !host.empty())
      hosts.insert(host);
  return {hosts.begin(), hosts.end()};
}

std::vector<Rank> culprits_without_host(const Job& job,
                                        const Verdict& verdict) {
  std::vector<Rank> unknown;
  for (const Rank culprit : verdict.culprits)
    if (job.host_of(culprit).empty())
      unknown.push_back(culprit);
  return unknown;
}

Result<EntryFilterOptions> parse_selection(const EntrySelection& selection) {
  using enum State;
  EntryFilterOptions filter;
  filter.ranks = TRY(NumberSelection::parse(selection.ranks));
  filter.sequences = TRY(NumberSelection::parse(selection.sequences));
  filter.groups = selection.groups;
  filter.operations = selection.operations;
  for (const std::string& name : selection.states) {
    constexpr std::array kStates = {kScheduled, kStarted, kCompleted, kUnknown};
    const auto state = std::ranges::find(kStates, name, state_name);
    if (state == kStates.end())
      return fail(ErrorKind::kUsage,
                  "'{}' is not a state: give scheduled, started, completed or "
                  "unknown",
                  name);
    filter.states.push_back(*state);
  }
  return filter;
}

}  // namespace postflight
