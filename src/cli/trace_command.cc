#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/trace.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/job_source.h"
#include "flight/model/rank_set.h"
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
  std::vector<std::string> stacks;
  std::string sqlite;
  bool all = false;
  bool why = false;
  bool nodes = false;
  bool strict = false;
};

bool logs_alone(const TraceOptions& options) {
  return options.source.paths.empty() && !options.logs.empty();
}

// A shell expands an unquoted --log logs/*.log to several words, of which only
// the first belongs to --log; the others would be taken for dumps.
Result<> check_logs(const TraceOptions& options) {
  const auto extension = [](const std::string& file) {
    return std::filesystem::path(file).extension();
  };
  for (const std::string& path : options.source.paths)
    for (const std::string_view usual : {".log", ".out", ".err", ".txt"})
      if (extension(path) == usual &&
          std::ranges::find(options.logs, usual, extension) !=
              options.logs.end())
        return fail(ErrorKind::kUsage,
                    "{} is given as a dump but seems to be a log: quote the "
                    "pattern (--log '*{}') or repeat --log",
                    path, usual);
  return {};
}

// A script drains what this prints, so a host that is missing is an error.
Exit write_nodes(const Job& job, const Verdict& verdict, bool problem,
                 Session& session) {
  if (session.options().json) {
    Output out([&session](std::string_view piece) { session.print(piece); });
    write_nodes_json(job, verdict, out);
  } else {
    for (const std::string& host : culprit_hosts(job, verdict))
      session.print(host + "\n");
  }
  const std::vector<Rank> unknown = culprits_without_host(job, verdict);
  if (unknown.empty())
    return exit_for(problem);
  session.complain(fmt::format(
      "the host{} of {} {} not known: list {} with --hosts",
      unknown.size() == 1 ? "" : "s", ranks_label(unknown),
      unknown.size() == 1 ? "is" : "are", unknown.size() == 1 ? "it" : "them"));
  return Exit::kCouldNotLook;
}

// All groups of the name, the verdict's first, or only that of --rank.
Result<> write_groups(const Job& job, const Verdict& verdict,
                      const TraceOptions& options, const Terminal& terminal,
                      const TraceReportOptions& report, Output& out) {
  constexpr std::size_t kMost = 8;  // of a screen
  std::vector<GroupId> groups = TRY(find_groups(job, options.group));
  if (options.rank) {
    const Rank rank = TRY(find_rank(job, *options.rank));
    std::erase_if(groups, [&](GroupId id) { return !job.group(id).has(rank); });
    if (groups.empty())
      return fail(ErrorKind::kUsage, "rank {} is not in a group {}", rank.value,
                  options.group);
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [&](GroupId id) { return id == verdict.group; });
  const std::size_t shown =
      options.all ? groups.size() : std::min(groups.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) {
    out += i == 0 ? "" : "\n";
    write_group_report(job, verdict, groups[i], report, terminal, out);
  }
  if (shown < groups.size())
    out += fmt::format(
        "\nand {} more groups {} (--all, or --rank N for the one of a rank)\n",
        groups.size() - shown, escape_for_terminal(options.group));
  return {};
}

// The options that lead to the same verdict, as a shell reads them.
std::string evidence_words(const TraceOptions& options) {
  std::string words = source_words(options.source);
  const auto add = [&words](std::string_view option, std::string_view value) {
    words += fmt::format("{}{} {}", words.empty() ? "" : " ", option,
                         shell_quoted(value));
  };
  if (!options.hosts.empty())
    add("--hosts", options.hosts);
  for (const std::string& log : options.logs)
    add("--log", log);
  for (const std::string& stacks : options.stacks)
    add("--stacks", stacks);
  return words;
}

Result<> write_answer(const Investigation& investigation,
                      const TraceOptions& options, Session& session) {
  const Job& job = investigation.job();
  const Verdict& verdict = investigation.verdict;
  const StackSnapshot* const stacks =
      investigation.stacks ? &*investigation.stacks : nullptr;
  const std::string trace_words = evidence_words(options);
  const std::string entries_words = source_words(options.source);
  const TraceReportOptions report = {.all = options.all,
                                     .why = options.why,
                                     .dumps = !logs_alone(options),
                                     .trace_words = trace_words,
                                     .entries_words = entries_words,
                                     .stacks = stacks};
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json) {
    write_trace_json(job, verdict, out, stacks);
  } else if (!options.group.empty()) {
    TRY(write_groups(job, verdict, options, session.terminal(), report, out));
  } else if (options.rank) {
    const Rank rank = TRY(find_rank(job, *options.rank));
    write_rank_report(job, verdict, rank, report, session.terminal(), out);
  } else {
    write_trace(job, verdict, report, session.terminal(), out);
  }
  return {};
}

Result<Exit> run(const TraceOptions& options, Session& session) {
  TRY(check_logs(options));
  if (!options.sqlite.empty())
    TRY(AtomicFile::check(options.sqlite, session.existing()));
  // Without a folder, logs speak for themselves.
  std::vector<std::string> paths;
  if (!logs_alone(options))
    paths = TRY(dump_paths(options.source));
  LoadProgress progress(session);
  const JobEvidence evidence = {
      .dumps = std::move(paths),
      .load = progress.follow(load_options(options.source)),
      .hosts = options.hosts,
      .logs = options.logs,
      .stacks = options.stacks};
  const Investigation found = TRY(investigate(evidence, session.context()));
  progress.finish();
  if (!options.sqlite.empty())
    TRY(write_flight_sqlite(found.matching, tabulate(found.matching),
                            options.sqlite, session.existing()));
  if (options.nodes)
    return write_nodes(found.job(), found.verdict,
                       is_problem(found.verdict, options.strict), session);
  TRY(write_answer(found, options, session));
  return exit_for(is_problem(found.verdict, options.strict));
}

}  // namespace

Command trace_command() {
  return {
      .name = "trace",
      .sentence =
          "Says which rank a hung job waits for, why, and where in its code.\n"
          "It reads the flight-recorder dumps of all ranks, pickle or JSON, "
          "and "
          "its logs. Exit 1 if the job hangs or is slow, or if the dumps are "
          "inconclusive.",
      .examples = {{"postflight trace dumps/", "who is at fault?"},
                   {"postflight trace dumps/ --rank 5", "what one rank did"},
                   {"postflight trace dumps/ --group dp_0",
                    "the ranks of one group"},
                   {"postflight trace dumps/ --json | jq .verdict",
                    "for other programs"},
                   {"postflight trace --log logs/", "from logs alone"},
                   {"postflight trace", "dumps in the default places"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<TraceOptions>();
        add_job_source(arguments, options->source);
        arguments.option("--rank", options->rank, "N",
                         "Show what this rank did and is waiting for");
        arguments.option("--group", options->group, "G",
                         "Show the state of each member of the groups of this "
                         "name; with --rank, of that rank's");
        arguments.option("--hosts", options->hosts, "FILE",
                         "The hosts of the ranks: a hostfile, or a Slurm node "
                         "list with tasks per node");
        arguments.option("--log", options->logs, "FILE",
                         "A log file, a folder of logs or a quoted glob, read "
                         "beside the dumps or, without any, alone; may be "
                         "repeated; - is standard input");
        arguments.option("--stacks", options->stacks, "FILE",
                         "Stacks of its processes (postflight stacks --json, "
                         "py-spy), to show what the ranks at fault do now; may "
                         "be repeated, oldest first");
        arguments.option("--sqlite", options->sqlite, "FILE",
                         "Also write all entries to an SQLite database");
        arguments.force();
        arguments.flag("--all", options->all, "Show all rows and findings");
        arguments.flag("--why", options->why,
                       "Replay the job without the fault, to show what would "
                       "have let the others continue");
        arguments.flag(
            "--nodes", options->nodes,
            "Print only the hosts of the ranks at fault, one per line");
        arguments.flag("--strict", options->strict,
                       "Exit with 1 for warnings, too");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
