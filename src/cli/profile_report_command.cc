#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/command.h"
#include "profile/log/log.h"
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
  const Limits limits;
  ProfileBuilder builder;
  std::vector<std::string> read;
  const std::unique_ptr<Progress> progress = session.progress(
      {.label = "Reading", .total_files = options.files.size()});
  for (const std::string& name : options.files) {
    const Result<MappedFile> file = MappedFile::open(name, limits);
    Result<> added =
        file ? read_profile_log(file->bytes(), name, limits, builder)
             : Result<>();
    progress->advance(0, 1);
    progress->erase();
    if (!file)
      session.complain(file.error());
    else if (!added)
      session.complain(fmt::format("{}: {}", name, added.error().message()));
    else
      read.push_back(name);
  }
  progress->finish();
  if (read.empty())
    return Exit::kCouldNotLook;
  const Profile& profile = builder.profile();
  Output out([&session](std::string_view piece) { session.print(piece); });
  if (session.options().json || options.format == "json")
    write_profile_json(profile, out);
  else if (options.format == "collapsed")
    write_profile_collapsed(profile, {.phases = !options.no_phases}, out);
  else if (options.format == "speedscope")
    write_profile_speedscope(profile, read.front(), out);
  else
    write_profile_text(profile, {.top = options.top, .files = read},
                       session.terminal(), out);
  return read.size() < options.files.size() ? Exit::kFound
                                            : exit_for(profile.findings);
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
