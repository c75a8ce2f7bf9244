#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/profile.h"
#include "cli/command.h"
#include "report/profile/report.h"

namespace postflight {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::string format = "text";
  std::size_t top = 15;
  bool all = false;
  bool lines = false;
  bool no_phases = false;
  ProfileSelection selection;
};

Result<Exit> run(const ReportOptions& options, Session& session) {
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Reading", .total_files = options.files.size()});
  ReadProfiles read = read_profiles(options.files, session.context(),
                                    [&progress] { progress->advance(0, 1); });
  progress->finish();
  for (const Error& problem : read.problems)
    session.complain(problem);
  if (read.files.empty())
    return Exit::kCouldNotLook;
  TRY(select_samples(options.selection, read.profile));
  Output out([&session](std::string_view piece) { session.print(piece); });
  profile_format(session.options().json ? "json" : options.format)
      .write(read.profile,
             {.files = read.files,
              .terminal = session.terminal(),
              .top = options.top,
              .all = options.all,
              .lines = options.lines,
              .phases = !options.no_phases},
             out);
  return read.problems.empty() ? exit_for(read.profile.findings) : Exit::kFound;
}

}  // namespace

Command profile_report_command() {
  return {
      .name = "report",
      .sentence = "Shows recorded profiles, combining those of several ranks.",
      .examples = {{"postflight profile report profile.pflog",
                    "where the time went"},
                   {"postflight profile report rank*.pflog --to speedscope",
                    "for speedscope.app"},
                   {"postflight profile report profile.pflog --to collapsed",
                    "for flamegraph.pl"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<ReportOptions>();
        std::vector<std::string> names;
        std::vector<std::string> titles;
        for (const ProfileFormat& format : profile_formats()) {
          names.emplace_back(format.name);
          titles.push_back(fmt::format("{}: {}", format.name, format.title));
        }
        arguments
            .positional("FILE", options->files,
                        "Profile written by postflight profile")
            .required();
        arguments
            .option("--to", options->format,
                    fmt::format("{}", fmt::join(names, "|")),
                    fmt::format("{}", fmt::join(titles, "; ")))
            .one_of(names);
        arguments.option("--top", options->top, "N", "Functions shown (15)")
            .between(1, 100'000);
        arguments.flag("--all", options->all,
                       "Show internals of Python, torch and imports, and "
                       "threads that only wait");
        arguments.flag("--lines", options->lines,
                       "A table by line, with the time in the interpreter, "
                       "other native code and the kernel apart");
        ProfileSelection& selection = options->selection;
        arguments.flag("--gil", selection.gil,
                       "Only time in which a thread held the GIL");
        arguments.option("--rank", selection.ranks, "RANKS",
                         "Only these ranks: 0-15,32");
        arguments.option("--thread", selection.threads, "THREAD",
                         "Only this thread: its number or a glob of its name; "
                         "may be repeated");
        arguments.option("--phase", selection.phase, "REGEX",
                         "Only phases whose name contains a match");
        arguments.option("--function", selection.function, "REGEX",
                         "Only stacks with a function whose name contains a "
                         "match");
        arguments.flag("--no-phases", options->no_phases,
                       "Collapsed: omit the phase before the frames");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
