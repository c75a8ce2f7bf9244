#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/profile.h"
#include "base/interrupt.h"
#include "base/pattern.h"
#include "cli/command.h"
#include "profile/engine/sampling_interval.h"
#include "report/profile/report.h"

namespace postflight {
namespace {

struct ProfileOptions {
  std::vector<std::string> command;
  std::optional<std::int32_t> pid;
  std::string rate = "99";
  std::string mode = "cpu";
  std::string engine = "auto";
  std::string duration;
  std::string output;
  std::size_t max_stack = 500;
  bool no_children = false;
  bool native = false;
  std::string phase_filter;
  std::string frame_filter;
  std::string frame_exclude;
  bool frame_filter_full = false;
};

Result<std::optional<Pattern>> pattern_of(std::string_view option,
                                          const std::string& text) {
  if (text.empty())
    return std::nullopt;
  return TRY(Pattern::compile(text).in(option));
}

Result<ProfileRequest> request_of(const ProfileOptions& options) {
  if (options.command.empty() && !options.pid)
    return fail(ErrorKind::kUsage,
                "nothing to profile: give -- COMMAND or --pid N (postflight "
                "profile --help)");
  if (!options.command.empty() && options.pid)
    return fail(ErrorKind::kUsage, "give either --pid or a command, not both");
  if (options.frame_filter.empty() && options.frame_filter_full)
    return fail(ErrorKind::kUsage,
                "--frame-filter-full says how --frame-filter matches, which "
                "is missing");
  ProfileRequest request = {
      .command = options.command,
      .pid = options.pid,
      .interval = TRY(parse_sampling_interval(options.rate)),
      .mode = options.mode == "wall" ? ProfileMode::kWall : ProfileMode::kCpu,
      .engine = options.engine == "external" ? EngineChoice::kExternal
                                             : EngineChoice::kAuto,
      .most_frames = options.max_stack,
      .children = !options.no_children,
      .native = options.native,
      .output = options.output};
  if (!options.duration.empty())
    request.duration = TRY(parse_profile_duration(options.duration));
  request.phases = {
      .phase = TRY(pattern_of("--phase-filter", options.phase_filter)),
      .frame = TRY(pattern_of("--frame-filter", options.frame_filter)),
      .whole_frame = options.frame_filter_full,
      .frame_exclude =
          TRY(pattern_of("--frame-exclude", options.frame_exclude))};
  return request;
}

void print_summary(const std::string& file, const Context& context,
                   bool to_stderr, Session& session) {
  const ReadProfiles read = read_profiles({&file, 1}, context);
  for (const Error& problem : read.problems)
    session.complain(problem);
  if (read.files.empty())
    return;
  Output out([&](std::string_view piece) {
    if (to_stderr)
      std::fwrite(piece.data(), 1, piece.size(), stderr);
    else
      session.print(piece);
  });
  profile_format(session.options().json ? "json" : "text")
      .write(read.profile,
             {.files = read.files, .terminal = session.terminal()}, out);
}

Result<Exit> run(const ProfileOptions& options, Session& session) {
  const Context context;
  ProfileRequest request = TRY(request_of(options));
  const std::unique_ptr<ProfileRun> profile =
      TRY(ProfileRun::start(std::move(request), context));
  const InterruptDeferral deferral([&](int signal, bool from_terminal) {
    profile->interrupt(signal, from_terminal);
  });
  const bool launched = !options.pid;
  // A launched program may print; nothing is drawn over that.
  const std::unique_ptr<Progress> progress =
      launched ? nullptr : session.progress({.label = "Profiling"});
  const ProfileOutcome outcome = TRY(profile->finish([&] {
    if (progress)
      progress->advance(0);
  }));
  if (progress)
    progress->finish();
  if (!outcome.trouble.empty())
    session.complain(outcome.trouble);
  // stdout is the launched program's own, except for JSON.
  if (!session.options().quiet || session.options().json)
    print_summary(outcome.file.native(), context,
                  launched && !session.options().json, session);
  if (!outcome.failure.empty())
    session.complain(
        fmt::format("{} ended with {}", options.command[0], outcome.failure));
  if (outcome.interrupted && launched)
    return static_cast<Exit>(130);
  return outcome.failure.empty() ? Exit::kWell : Exit::kFound;
}

}  // namespace

Command profile_command() {
  return {
      .name = "profile",
      .sentence =
          "Samples what a Python program spends its time on.\n"
          "The program needs nothing added and is never stopped; processes "
          "it starts are\nfollowed. Samples go to a file as they are taken. "
          "Exit 1 if the program fails.",
      .examples = {{"postflight profile -- python train.py", "from its start"},
                   {"postflight profile --pid 4711 --duration 30s",
                    "a program that runs"},
                   {"postflight profile --mode wall -- python train.py",
                    "waiting, too"},
                   {"postflight profile report profile.pflog",
                    "look again later"}},
      .declare =
          [](CommandArguments& arguments) {
            const auto options = std::make_shared<ProfileOptions>();
            arguments.positional("COMMAND", options->command,
                                 "What to run and profile, after --");
            arguments.option("--pid", options->pid, "N",
                             "Profile this process");
            arguments.option("--rate", options->rate, "HZ",
                             "Samples a second (99), or every 5ms or "
                             "10000000cycles");
            arguments
                .option("--mode", options->mode, "cpu|wall",
                        "CPU time of running threads, or all time")
                .one_of({"cpu", "wall"});
            arguments
                .option("--engine", options->engine, "auto|external",
                        "Sample inside the program if possible, or never")
                .one_of({"auto", "external"});
            arguments.flag("--native", options->native,
                           "Native frames, too (sampled from inside)");
            arguments.option("--duration", options->duration, "TIME",
                             "Stop after that: 30s, 5m");
            arguments
                .option("--max-stack", options->max_stack, "N",
                        "Frames kept of a stack (500)")
                .between(1, 4096);
            arguments.option("--phase-filter", options->phase_filter, "REGEX",
                             "Only phases whose name has this in it");
            arguments.option("--frame-filter", options->frame_filter, "REGEX",
                             "Only frame ids (of torch.compile) that begin "
                             "so");
            arguments.flag("--frame-filter-full", options->frame_filter_full,
                           "... that match as a whole");
            arguments.option("--frame-exclude", options->frame_exclude, "REGEX",
                             "Not those that begin so");
            arguments.flag("--no-children", options->no_children,
                           "Leave out processes that it starts");
            arguments.option("-o,--output", options->output, "FILE",
                             "Where the samples go (profile.pflog)");
            return
                [options](Session& session) { return run(*options, session); };
          },
      .commands = {profile_report_command()}};
}

}  // namespace postflight
