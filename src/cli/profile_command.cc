#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

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
    return fail(ErrorKind::kUsage, "--frame-filter-full needs --frame-filter");
  ProfileRequest request;
  request.command = options.command;
  request.pid = options.pid;
  request.mode =
      options.mode == "wall" ? ProfileMode::kWall : ProfileMode::kCpu;
  request.engine = options.engine == "external" ? EngineChoice::kExternal
                                                : EngineChoice::kAuto;
  request.most_frames = options.max_stack;
  request.children = !options.no_children;
  request.native = options.native;
  request.output = options.output;
  request.interval = TRY(parse_sampling_interval(options.rate));
  if (!options.duration.empty())
    request.duration = TRY(parse_profile_duration(options.duration));
  PhaseFilter& phases = request.phases;
  phases.phase = TRY(pattern_of("--phase-filter", options.phase_filter));
  phases.frame = TRY(pattern_of("--frame-filter", options.frame_filter));
  phases.whole_frame = options.frame_filter_full;
  phases.frame_exclude =
      TRY(pattern_of("--frame-exclude", options.frame_exclude));
  return request;
}

// "recording to profile-2.pflog, as profile.pflog exists": said before the
// program prints, so that nobody reads an old file for the new one.
void name_file(const ProfileRun& run, const Session& session) {
  if (run.file() != run.asked_for())
    session.complain(fmt::format("recording to {}, as {} exists",
                                 run.file().native(),
                                 run.asked_for().native()));
}

void print_summary(const std::string& file, bool to_stderr, Session& session) {
  const ReadProfiles read = read_profiles({&file, 1}, session.context());
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
  ProfileRequest request = TRY(request_of(options));
  request.existing = session.existing();
  // Signals are passed on from before the program is launched: it may print,
  // and its user press Ctrl-C, before start() returns.
  std::mutex starting;
  std::unique_ptr<ProfileRun> profile;
  int early_signal = 0;
  const InterruptDeferral deferral([&](int signal, bool from_terminal) {
    const std::lock_guard lock(starting);
    if (profile)
      profile->interrupt(signal, from_terminal);
    else
      early_signal = signal;
  });
  {
    const std::lock_guard lock(starting);
    profile = TRY(ProfileRun::start(std::move(request), session.context()));
    if (early_signal != 0)
      profile->interrupt(early_signal, /*from_terminal=*/false);
  }
  name_file(*profile, session);
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
  // stdout is the launched program's own.
  if (!session.options().quiet || session.options().json)
    print_summary(outcome.file.native(), launched, session);
  if (!outcome.failure.empty())
    session.complain(
        fmt::format("{} ended with {}", options.command[0], outcome.failure));
  // The end of the program, as if it had been run alone; its core dump is its
  // own.
  if (outcome.signal != 0) {
    profile.reset();
    std::fflush(nullptr);
    const rlimit none = {};
    ::setrlimit(RLIMIT_CORE, &none);
    InterruptGuard::die_of(outcome.signal);
  }
  return static_cast<Exit>(outcome.status);
}

}  // namespace

Command profile_command() {
  return {
      .name = "profile",
      .sentence =
          "Samples where a Python program spends its time.\n"
          "The program needs no changes and is never stopped; child "
          "processes are\nfollowed. Samples are written to a file as they are "
          "taken. For a launched\nprogram the summary, or with --json its "
          "JSON, goes "
          "to stderr, and its exit\nstatus is passed on.",
      .examples = {{"postflight profile -- python train.py",
                    "launch and profile"},
                   {"postflight profile --pid 4711 --duration 30s",
                    "attach to a process"},
                   {"postflight profile --mode wall -- python train.py",
                    "include waiting"},
                   {"postflight profile report profile.pflog",
                    "show it again"}},
      .declare =
          [](CommandArguments& arguments) {
            const auto options = std::make_shared<ProfileOptions>();
            arguments.positional("COMMAND", options->command,
                                 "Program to launch and profile, after --");
            arguments.option("--pid", options->pid, "N",
                             "Attach to this process");
            arguments.option("--rate", options->rate, "HZ",
                             "Samples per second (99), or an interval: 5ms, "
                             "1e7cycles");
            arguments
                .option("--mode", options->mode, "cpu|wall",
                        "CPU time of running threads, or wall time of all")
                .one_of({"cpu", "wall"});
            arguments
                .option(
                    "--engine", options->engine, "auto|external",
                    "Sample from inside where possible, or only from outside")
                .one_of({"auto", "external"});
            arguments.flag(
                "--native", options->native,
                "Include native frames, and programs other than Python");
            arguments.option("--duration", options->duration, "TIME",
                             "Stop after this time: 30s, 5m");
            arguments
                .option("--max-stack", options->max_stack, "N",
                        "Frames kept per stack (500)")
                .between(1, 4096);
            arguments.option("--phase-filter", options->phase_filter, "REGEX",
                             "Only phases whose name contains a match");
            arguments.option("--frame-filter", options->frame_filter, "REGEX",
                             "Only torch.compile frame ids that start with a "
                             "match");
            arguments.flag("--frame-filter-full", options->frame_filter_full,
                           "Match whole frame ids with --frame-filter");
            arguments.option("--frame-exclude", options->frame_exclude, "REGEX",
                             "Exclude frame ids that start with a match");
            arguments.flag("--no-children", options->no_children,
                           "Do not follow child processes");
            arguments.option("-o,--output", options->output, "FILE",
                             "Write samples to this file (profile.pflog), or "
                             "with -2, -3, ... in its name if that exists");
            arguments.force();
            return
                [options](Session& session) { return run(*options, session); };
          },
      .commands = {profile_report_command(), profile_top_command()}};
}

}  // namespace postflight
