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
  bool no_phases = false;
};

Exit run(const ReportOptions& options, Session& session) {
  const Context context;
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Reading", .total_files = options.files.size()});
  const ReadProfiles read = read_profiles(
      options.files, context, [&progress] { progress->advance(0, 1); });
  progress->finish();
  for (const Error& problem : read.problems)
    session.complain(problem);
  if (read.files.empty())
    return Exit::kCouldNotLook;
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json || options.format == "json")
    write_profile_json(read.profile, out);
  else if (options.format == "collapsed")
    write_profile_collapsed(read.profile, {.phases = !options.no_phases}, out);
  else if (options.format == "speedscope")
    write_profile_speedscope(read.profile, read.files.front(), out);
  else
    write_profile_text(read.profile, {.top = options.top, .files = read.files},
                       session.terminal(), out);
  return read.problems.empty() ? exit_for(read.profile.findings) : Exit::kFound;
}

}  // namespace

Command profile_report_command() {
  return {
      .name = "report",
      .sentence =
          "Shows profiles that were taken, those of several ranks "
          "together.",
      .examples = {{"postflight profile report profile.pflog",
                    "where the time went"},
                   {"postflight profile report rank*.pflog --to speedscope",
                    "for speedscope.app"},
                   {"postflight profile report profile.pflog --to collapsed",
                    "for flamegraph.pl"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<ReportOptions>();
        arguments
            .positional("FILE", options->files, "What postflight profile wrote")
            .required();
        arguments
            .option("--to", options->format, "text|collapsed|speedscope|json",
                    "What to make of them")
            .one_of({"text", "collapsed", "speedscope", "json"});
        arguments.option("--top", options->top, "N", "Functions shown (15)")
            .between(1, 100'000);
        arguments.flag("--no-phases", options->no_phases,
                       "Collapsed: no phase before the frames");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
