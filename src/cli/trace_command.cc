#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/job_source.h"
#include "flight/diagnosis/diagnosis.h"
#include "flight/model/rank_set.h"
#include "joblog/host_map.h"
#include "joblog/job_log.h"
#include "report/flight/sqlite.h"
#include "report/flight/trace_text.h"

namespace postflight {
namespace {

struct TraceOptions {
  JobSource source;
  std::optional<std::int32_t> rank;
  std::string group;
  std::string hosts;
  std::vector<std::string> logs;
  std::string sqlite;
  bool all = false;
  bool nodes = false;
  bool strict = false;
};

Exit exit_of(const Verdict& verdict, bool strict) {
  if (strict && exit_for(verdict.findings, strict) == Exit::kFound)
    return Exit::kFound;
  switch (verdict.kind) {
    case VerdictKind::kHealthy:
      return Exit::kWell;
    case VerdictKind::kInconclusive:
      return verdict.pending ? Exit::kFound : Exit::kWell;
    default:
      return Exit::kFound;
  }
}

std::optional<GroupId> find_group(const Job& job, std::string_view wanted) {
  for (std::uint32_t g = 0; g < job.groups.size(); ++g)
    if (job.text(job.groups[g].name) == wanted ||
        job.text(job.groups[g].description) == wanted)
      return GroupId{g};
  return std::nullopt;
}

std::string group_names(const Job& job) {
  std::set<std::string> names;
  for (const Group& group : job.groups)
    names.insert(std::string(job.text(
        group.description != TextId{} ? group.description : group.name)));
  return fmt::format("{}", fmt::join(names, ", "));
}

Exit write_nodes(const Job& job, const Verdict& verdict, Session& session) {
  std::set<std::string> hosts;
  for (const Rank culprit : verdict.culprits)
    if (const std::string_view host = job.host_of(culprit); !host.empty())
      hosts.emplace(host);
  for (const std::string& host : hosts)
    session.print(host + "\n");
  if (hosts.empty() && !verdict.culprits.empty())
    session.complain(fmt::format(
        "the hosts of ranks {} are not known: give them with --hosts",
        rank_set_text(verdict.culprits)));
  return exit_of(verdict, false);
}

// The text of a file, or a node list as it stands.
Result<std::string> host_text(const std::string& given) {
  if (!std::filesystem::exists(given))
    return given;
  const MappedFile file = TRY(MappedFile::open(given));
  return std::string(as_text(file.bytes()));
}

// Puts beside the verdict what the logs say, the first thing first.
void add_log(const JobLog& log, Verdict& verdict) {
  constexpr std::size_t kMost = 50;
  std::vector<Finding> found;
  for (const LogEvent& event : log.events) {
    if (found.size() == kMost)
      break;
    std::string who;
    if (event.ranks.size() > 1)
      who = fmt::format("ranks {}: ", rank_set_text(event.ranks));
    else if (event.rank)
      who = fmt::format("rank {}: ", event.rank->value);
    else if (!event.host.empty())
      who = event.host + ": ";
    std::string message = who + event.message;
    if (!event.frame.empty())
      message += " at " + event.frame;
    if (event.earliest)
      message += "; the first sign of trouble in the logs";
    found.push_back({fmt::format("log_{}", log_event_kind_name(event.kind)),
                     event.earliest ? Severity::kError : Severity::kWarning,
                     std::move(message),
                     fmt::format("{}:{}", event.file, event.line)});
  }
  found.insert(found.end(), log.findings.begin(), log.findings.end());
  verdict.findings.insert(verdict.findings.begin(), found.begin(), found.end());
}

// Reads all that was given; what can't be read is refused, not left out.
Result<std::pair<Job, Verdict>> investigate(TraceOptions& options,
                                            Session& session) {
  Job job = TRY(load_job(options.source, session));
  HostMap hosts;
  if (!options.hosts.empty()) {
    const std::vector<Rank> world = job.world();
    const std::string text = TRY(host_text(options.hosts));
    hosts = TRY(read_host_map(text, world.size()));
    for (const Rank rank : world)
      if (const std::string_view host = hosts.host_of(rank); !host.empty())
        job.hosts[rank] = host;
  }
  Verdict verdict = diagnose(job);
  if (!options.logs.empty()) {
    const JobLog log = TRY(read_job_logs(
        options.logs, {.hosts = hosts.size() > 0 ? &hosts : nullptr}));
    add_log(log, verdict);
  }
  if (!options.sqlite.empty())
    TRY(write_flight_sqlite(job, options.sqlite));
  return std::pair(std::move(job), std::move(verdict));
}

Result<Exit> run(TraceOptions& options, Session& session) {
  const auto [job, verdict] = TRY(investigate(options, session));
  if (options.nodes)
    return write_nodes(job, verdict, session);
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json) {
    write_trace_json(job, verdict, out);
  } else if (options.rank) {
    const Rank rank = {*options.rank};
    if (!std::ranges::binary_search(job.world(), rank))
      return fail(ErrorKind::kUsage, "there is no rank {} in this job, only {}",
                  rank.value, rank_set_text(job.world()));
    write_rank_story(job, verdict, rank, session.terminal(), out);
  } else if (!options.group.empty()) {
    const std::optional<GroupId> group = find_group(job, options.group);
    if (!group)
      return fail(ErrorKind::kUsage,
                  "there is no group {} in this job, only {}", options.group,
                  group_names(job));
    write_group_story(job, verdict, *group, session.terminal(), out);
  } else {
    const std::string given =
        fmt::format("{}", fmt::join(options.source.paths, " "));
    write_trace(job, verdict, {.all = options.all, .source = given},
                session.terminal(), out);
  }
  return exit_of(verdict, options.strict);
}

}  // namespace

Command trace_command() {
  return {
      .name = "trace",
      .sentence =
          "Says which rank a hung job waits for, why, and where in its code.\n"
          "It reads the flight-recorder dumps that each rank left, pickle or "
          "JSON. Exit 0 if the job is healthy, 1 if not.",
      .examples = {{"postflight trace dumps/", "who is at fault?"},
                   {"postflight trace dumps/ --rank 5", "one rank's story"},
                   {"postflight trace dumps/ --group dp_0", "one group's"},
                   {"postflight trace dumps/ --json | jq .verdict",
                    "for a program"},
                   {"postflight trace", "dumps in the usual places"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<TraceOptions>();
        add_job_source(arguments, options->source);
        arguments.option("--rank", options->rank, "N",
                         "Tell what this rank did and waits for");
        arguments.option("--group", options->group, "G",
                         "Tell how the members of this group stand");
        arguments.option("--hosts", options->hosts, "FILE",
                         "Which ranks ran where: a hostfile, or Slurm's node "
                         "list with tasks per node");
        arguments.option("--log", options->logs, "FILE",
                         "The job's logs; what they say is put beside the "
                         "verdict");
        arguments.option("--sqlite", options->sqlite, "FILE",
                         "Write all entries to a database, too");
        arguments.flag("--all", options->all, "Show all rows and findings");
        arguments.flag("--nodes", options->nodes,
                       "Print only the hosts of those at fault, one a line");
        arguments.flag("--strict", options->strict, "Exit 1 for warnings, too");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
