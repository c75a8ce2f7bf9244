#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/bytes.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/job_source.h"
#include "flight/classic/analysis.h"
#include "flight/classic/loader.h"
#include "flight/classic/text.h"
#include "flight/model/replicas.h"
#include "report/classic/database.h"
#include "report/classic/report.h"
#include "report/flight/json.h"
#include "report/flight/sqlite.h"

namespace postflight {
namespace {

struct FrTraceOptions {
  std::string folder;
  std::optional<std::string> prefix;
  std::optional<std::vector<std::int64_t>> ranks;
  std::optional<std::vector<std::string>> groups;
  std::optional<std::string> output;
  std::optional<std::string> sqlite;
  std::optional<std::int32_t> replica_size;
  std::int64_t mismatch_cap = 10;
  bool allow_incomplete = false;
  bool just_entries = false;
  bool verbose = false;
  bool stacks = false;
  bool transform_ft = false;
  bool to_stdout = false;
  bool our_exit_code = false;
};

// torchfrtrace's exit codes: 0 whatever it finds, 1 if it fails.
constexpr Exit kTheirWell = Exit::kWell;
constexpr Exit kTheirCouldNotLook = Exit::kFound;

class FrTrace {
 public:
  FrTrace(const FrTraceOptions& options, Session& session)
      : options_(options),
        session_(session),
        out_([this](std::string_view piece) { print(piece); }) {}

  Exit run() {
    const Result<Exit> exit = look();
    if (exit)
      return *exit;
    line(exit.error().message());
    return options_.our_exit_code ? Exit::kCouldNotLook : kTheirCouldNotLook;
  }

 private:
  Result<Exit> look() {
    TRY(check_options());
    Job job = TRY(load());
    write_classic_warnings(job, out_);
    debug("built groups, memberships");
    if (options_.just_entries) {
      show_entries(job);
      return Exit::kWell;
    }
    TRY(check_dumps(job));
    const Matching matching(job, session_.context());
    const CollectiveTable table = tabulate(matching);
    const ClassicAnalysis analysis = analyze_classic(
        matching, table, {.mismatch_cap = options_.mismatch_cap});
    if (options_.sqlite)
      TRY(write_flight_sqlite(matching, table, *options_.sqlite,
                              session_.existing()));
    if (session_.options().json) {
      Output out([this](std::string_view piece) { session_.print(piece); });
      write_flight_json(matching, table, analysis, out);
    }
    if (options_.output)
      TRY(save(job, analysis));
    if (session_.options().json)
      return exit_of(analysis);
    write_classic_report(job, analysis, {.verbose = options_.verbose}, out_);
    if (options_.verbose)
      write_classic_tables(job, analysis, out_);
    return exit_of(analysis);
  }

  Result<> check_options() const {
    if (options_.sqlite)
      TRY(AtomicFile::check(*options_.sqlite, session_.existing()));
    if (session_.options().json && options_.just_entries)
      return fail(ErrorKind::kUsage,
                  "-j has no JSON form: use 'postflight entries --json {}'",
                  options_.folder);
    if (options_.ranks && !options_.just_entries)
      return fail(ErrorKind::kUsage,
                  "AssertionError: Not support selecting ranks without "
                  "printing entries");
    if (options_.groups && !options_.just_entries)
      return fail(ErrorKind::kUsage,
                  "AssertionError: Not support selecting pg filters without "
                  "printing entries");
    if (options_.folder.empty())
      return fail(ErrorKind::kUsage,
                  "AssertionError: Trace directory trace_dir is required");
    return {};
  }

  Result<Job> load() {
    const SteadyClock clock;
    const auto start = clock.now();
    LoadProgress progress(session_);
    ClassicInput input = TRY(
        load_classic(options_.folder,
                     {.prefix = options_.prefix, .load = progress.follow({})},
                     session_.context()));
    progress.finish();
    if (input.inferred_prefix)
      debug(fmt::format("Inferred common prefix {}", *input.inferred_prefix));
    const std::chrono::duration<double> seconds = clock.now() - start;
    debug(fmt::format("loaded {} files in {}s", input.files, seconds.count()));
    if (options_.transform_ft) {
      if (options_.replica_size.value_or(0) <= 0)
        return fail(ErrorKind::kUsage,
                    "AssertionError: World size is required for transform_ft");
      shift_replica_groups(input.job, *options_.replica_size);
    }
    return std::move(input.job);
  }

  void show_entries(const Job& job) {
    ClassicEntriesOptions entries = {.verbose = options_.verbose,
                                     .stacks = options_.stacks};
    if (options_.ranks) {
      entries.all_ranks = false;
      entries.ranks = *options_.ranks;
    }
    if (options_.groups) {
      entries.all_groups = false;
      entries.groups = *options_.groups;
    }
    write_classic_entries(job, entries, out_);
  }

  Result<> check_dumps(const Job& job) {
    const std::vector<Rank> missing = job.without_dump();
    if (missing.empty() || options_.allow_incomplete)
      return {};
    return fail(ErrorKind::kIo,
                "AssertionError: Missing dump files from ranks {}\n"
                "(--allow-incomplete-ranks continues without them; 'postflight "
                "trace {}' shows who waits for them)",
                rank_set_python(missing), options_.folder);
  }

  Result<> save(const Job& job, const ClassicAnalysis& analysis) const {
    const std::string pickle = TRY(classic_database(job, analysis));
    // As torchfrtrace does, without asking.
    AtomicFile file =
        TRY(AtomicFile::create(*options_.output, Existing::kReplace));
    TRY(file.write(as_bytes(pickle)));
    return file.commit();
  }

  Exit exit_of(const ClassicAnalysis& analysis) const {
    if (!options_.our_exit_code)
      return kTheirWell;
    return exit_for(
        std::ranges::any_of(analysis.problems, &ClassicProblem::reported));
  }

  void debug(std::string_view text) {
    if (options_.verbose)
      line(text);
  }

  // The text may have several lines.
  void line(std::string_view text) {
    while (true) {
      const std::size_t end = text.find('\n');
      out_ += escape_for_terminal(text.substr(0, end));
      out_ += "\n";
      if (end == text.npos)
        return;
      text.remove_prefix(end + 1);
    }
  }

  void print(std::string_view piece) const {
    if (options_.to_stdout && !session_.options().json)
      session_.print(piece);
    else
      std::fwrite(piece.data(), 1, piece.size(), stderr);
  }

  const FrTraceOptions& options_;
  Session& session_;
  Output out_;
};

}  // namespace

Command fr_trace_command() {
  return {
      .name = "fr-trace",
      .sentence =
          "Prints torchfrtrace's report on a folder of flight-recorder dumps.\n"
          "It takes torchfrtrace's options, prints to stderr and exits with 0 "
          "whatever it finds, but corrects its mistakes: docs/differences.md.",
      .examples = {{"postflight fr-trace dumps/", "mismatched collectives"},
                   {"postflight fr-trace -j dumps/",
                    "all entries, side by side"},
                   {"postflight fr-trace -v -o jobs.db dumps/",
                    "tables and a database"},
                   {"postflight fr-trace --exit-code --stdout dumps/",
                    "for a script"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<FrTraceOptions>();
        arguments.positional(
            "DIR", options->folder,
            "Folder with one dump per rank, named <prefix><rank>");
        arguments.option(
            "-p,--prefix", options->prefix, "TEXT",
            "The text before the rank in names; inferred if absent");
        arguments.flag("-j,--just_print_entries", options->just_entries,
                       "Only print the entries of all ranks side by side");
        arguments
            .option("--selected-ranks", options->ranks, "RANK...",
                    "With -j: only these ranks")
            .several();
        arguments
            .option("--pg-filters", options->groups, "NAME...",
                    "With -j: only groups with these names or descriptions")
            .several();
        arguments.flag("--print_stack_trace", options->stacks,
                       "With -j: also print a table of all stacks");
        arguments.flag("--allow-incomplete-ranks", options->allow_incomplete,
                       "Continue if dumps of some ranks are missing");
        arguments.option("--mismatch_cap", options->mismatch_cap, "COUNT",
                         "Stop after this many mismatches in a group (10)");
        arguments.flag("-v,--verbose", options->verbose,
                       "Also print unfinished entries and all tables");
        arguments.option("-o,--output", options->output, "FILE",
                         "Write the tables as a pickle, for Python with torch");
        arguments.option("--sqlite", options->sqlite, "FILE",
                         "Write all entries to an SQLite database");
        arguments.force();
        arguments.flag("--transform-ft", options->transform_ft,
                       "Convert the ranks of torchft replicas to global ranks");
        arguments.option("--group-world-size", options->replica_size, "COUNT",
                         "Ranks per torchft replica, for --transform-ft");
        arguments.flag("--stdout", options->to_stdout,
                       "Print to standard output instead of stderr");
        arguments.flag("--exit-code", options->our_exit_code,
                       "Exit with 1 if anything is reported, 2 on failure");
        arguments.threads("COUNT",
                          "How many threads to use (one per processor)");
        return [options](Session& session) {
          return FrTrace(*options, session).run();
        };
      }};
}

}  // namespace postflight
