#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/trace.h"
#include "base/environment.h"
#include "cli/command.h"
#include "cli/job_source.h"
#include "cli/pager.h"
#include "flight/model/entry_filter.h"
#include "report/flight/entries_json.h"
#include "report/flight/entries_text.h"
#include "report/flight/sqlite.h"

namespace postflight {
namespace {

struct EntriesOptions {
  JobSource source;
  EntrySelection selection;
  EntriesGridOptions grid;
  bool no_pager = false;
  std::string sqlite;
};

void write(const Matching& matching, const EntryFilter& filter,
           const EntriesOptions& options, Session& session) {
  const bool json = session.options().json;
  std::unique_ptr<Pager> pager;
  if (session.terminal().stdout_is_terminal && !json && !options.no_pager)
    pager = Pager::start(process_environment());
  bool wanted = true;
  Output out([&](std::string_view piece) {
    if (pager == nullptr)
      session.print(piece);
    else
      wanted = wanted && pager->write(piece);
  });
  if (json)
    write_entries_json(matching.job(), filter, out);
  else
    write_entries(matching, filter, options.grid, session.terminal(), out);
}

Result<Exit> run(const EntriesOptions& options, Session& session) {
  EntryFilterOptions wanted = TRY(parse_selection(options.selection));
  if (!options.sqlite.empty())
    TRY(AtomicFile::check(options.sqlite, session.existing()));
  const std::vector<std::string> paths = TRY(dump_paths(options.source));
  LoadProgress progress(session);
  const Job job = TRY(load_job(
      paths, progress.follow(load_options(options.source)), session.context()));
  progress.finish();
  const Matching matching(job, session.context());
  if (!options.sqlite.empty())
    TRY(write_flight_sqlite(matching, tabulate(matching), options.sqlite,
                            session.existing()));
  const EntryFilter filter(job, std::move(wanted));
  write(matching, filter, options, session);
  return exit_for(job.all_findings());
}

void declare(CommandArguments& arguments, EntriesOptions& options) {
  add_job_source(arguments, options.source);
  arguments.option("--ranks", options.selection.ranks, "RANKS",
                   "Only these ranks: 0-15,32-1016:8");
  arguments
      .option("--groups", options.selection.groups, "GLOB,...",
              "Only groups whose name or description matches (*, ?, [a-z])")
      .separated_by(',');
  arguments
      .option("--operations", options.selection.operations, "GLOB,...",
              "Only rows with an operation that matches (*, ?, [a-z])")
      .separated_by(',');
  arguments
      .option("--states", options.selection.states,
              "scheduled,started,completed,unknown",
              "Only rows with an entry in one of these states")
      .separated_by(',')
      .one_of({"scheduled", "started", "completed", "unknown"});
  arguments.option("--sequences", options.selection.sequences, "NUMBERS",
                   "Only these sequence numbers: 100-200, 1400-");
  arguments.option("--last", options.grid.last, "N",
                   "Only the last N rows of each group");
  arguments.flag("--stacks", options.grid.stacks,
                 "Number the call stacks and list them");
  arguments.flag("--no-pager", options.no_pager, "Do not use $PAGER or less");
  arguments.option("--sqlite", options.sqlite, "FILE",
                   "Also write all entries to an SQLite database");
  arguments.force();
}

}  // namespace

Command entries_command() {
  return {
      .name = "entries",
      .sentence =
          "Shows the entries of flight-recorder dumps, all ranks side by "
          "side.\nThere is a table per group and a row per sequence number; "
          "identical ranks share a column.",
      .examples = {{"postflight entries dumps/", "everything"},
                   {"postflight entries dumps/ --last 5", "how it ended"},
                   {"postflight entries dumps/ --states scheduled",
                    "what never started"},
                   {"postflight entries dumps/ --ranks 0-63:8 --groups 'dp*'",
                    "some ranks and groups"},
                   {"postflight entries dumps/ --sqlite job.db --last 1",
                    "a database to query"},
                   {"postflight entries --json dumps/ | jq .name",
                    "one line per entry"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<EntriesOptions>();
        declare(arguments, *options);
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
