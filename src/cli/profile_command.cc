#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/pattern.h"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "profile/engine/agent_image.h"
#include "profile/engine/launch.h"
#include "profile/engine/sampling_interval.h"
#include "profile/engine/sampling_loop.h"
#include "profile/phase/helper.h"
#include "profile/process/identity.h"
#include "report/profile/report.h"

namespace postflight {
namespace {

using std::chrono::nanoseconds;

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

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// The file the user named, or the first name that is free.
Result<ProfileLogWriter> create_log(const ProfileOptions& options,
                                    std::int32_t rank, std::string& name) {
  if (!options.output.empty()) {
    name = options.output;
    return ProfileLogWriter::create(name, false);
  }
  const std::string stem =
      rank < 0 ? "profile" : fmt::format("profile-rank{}", rank);
  constexpr int kMostNames = 10'000;
  for (int number = 1;; ++number) {
    name = number == 1 ? stem + ".pflog"
                       : fmt::format("{}-{}.pflog", stem, number);
    Result<ProfileLogWriter> log = ProfileLogWriter::create(name, true);
    if (log || !std::filesystem::exists(name) || number == kMostNames)
      return log;
  }
}

void write_notes(const ProfileOptions& options, nanoseconds interval,
                 ProfileLogWriter& log) {
  log.note("mode", options.mode);
  log.note("rate",
           fmt::format("{:.4g}", 1e9 / static_cast<double>(interval.count())));
  log.note("host", host_name());
  if (options.pid)
    log.note("pid", std::to_string(*options.pid));
  else
    log.note("command", joined(options.command));
  log.note("start_ns",
           std::to_string(
               nanoseconds(std::chrono::system_clock::now().time_since_epoch())
                   .count()));
}

void summarise_log(const std::string& name, Session& session, bool to_stderr) {
  const Limits limits;
  const Result<MappedFile> file = MappedFile::open(name, limits);
  ProfileBuilder builder;
  if (!file) {
    session.complain(file.error());
    return;
  }
  if (const auto read = read_profile_log(file->bytes(), name, limits, builder);
      !read) {
    session.complain(fmt::format("{}: {}", name, read.error().message()));
    return;
  }
  // What the program prints is its own; ours goes beside it.
  Output out([&](std::string_view piece) {
    if (to_stderr)
      std::fwrite(piece.data(), 1, piece.size(), stderr);
    else
      session.print(piece);
  });
  if (session.options().json)
    write_profile_json(builder.profile(), out);
  else
    write_profile_text(builder.profile(), {.files = {name}}, session.terminal(),
                       out);
}

// What the signals of a user make of a profile that is being taken.
struct Interrupts {
  std::atomic<int> count = 0;

  // The first asks the program to end, if it has not heard it itself.
  void heard(int signal, bool from_terminal, pid_t launched) {
    const int before = count.fetch_add(1);
    if (launched <= 0)
      return;
    if (before > 0)
      ::kill(launched, SIGKILL);
    else if (!from_terminal)
      ::kill(launched, signal);
  }
};

using PhaseFilter = decltype(SamplingOptions::phase_filter);

Result<std::shared_ptr<const Pattern>> pattern_of(std::string_view option,
                                                  const std::string& text) {
  if (text.empty())
    return nullptr;
  Result<Pattern> pattern = Pattern::compile(text);
  if (!pattern)
    return tl::unexpected(std::move(pattern.error()).in(option));
  return std::make_shared<const Pattern>(*std::move(pattern));
}

// What the user asks of phases; null if nothing.
Result<PhaseFilter> phase_filter(const ProfileOptions& options) {
  const auto phase = TRY(pattern_of("--phase-filter", options.phase_filter));
  const auto frame = TRY(pattern_of("--frame-filter", options.frame_filter));
  const auto exclude =
      TRY(pattern_of("--frame-exclude", options.frame_exclude));
  if (frame == nullptr && options.frame_filter_full)
    return fail(ErrorKind::kUsage,
                "--frame-filter-full says how --frame-filter matches, which "
                "is missing");
  if (phase == nullptr && frame == nullptr && exclude == nullptr)
    return PhaseFilter();
  return [phase, frame, exclude, full = options.frame_filter_full](
             const std::string& name, const std::string& frame_id) {
    if (phase != nullptr && !phase->found_in(name))
      return false;
    if (exclude != nullptr && exclude->matches_start_of(frame_id))
      return false;
    return frame == nullptr || (full ? frame->matches(frame_id)
                                     : frame->matches_start_of(frame_id));
  };
}

Result<Exit> take_profile(const ProfileOptions& options, Session& session) {
  SamplingOptions engine_options;
  engine_options.interval = TRY(parse_sampling_interval(options.rate));
  if (!options.duration.empty())
    engine_options.duration = TRY(parse_profile_duration(options.duration));
  engine_options.children = !options.no_children;
  engine_options.mode =
      options.mode == "wall" ? ProfileMode::kWall : ProfileMode::kCpu;
  engine_options.most_frames = options.max_stack;
  // Waiting threads get no signals, and only launched ones have the agent.
  engine_options.agent =
      options.engine == "auto" && options.mode == "cpu" && !options.pid;
  engine_options.native = options.native;
  engine_options.rank = rank_from(process_environment());
  engine_options.phase_filter = TRY(phase_filter(options));
  if (options.pid)
    TRY(check_permission(*options.pid));
  else
    TRY(Launch::check(options.command[0]));

  std::string name;
  ProfileLogWriter log = TRY(create_log(options, engine_options.rank, name));
  write_notes(options, engine_options.interval, log);
  std::optional<TemporaryFolder> phases;
  std::optional<Launch> launch;
  if (!options.pid) {
    phases.emplace(TRY(TemporaryFolder::create()));
    engine_options.folder = phases->path();
    std::vector<std::string> environment =
        TRY(install_phase_helper(phases->path(), process_environment()));
    if (engine_options.agent)
      for (std::string& variable : TRY(install_agent(
               phases->path(), engine_options.interval, process_environment())))
        environment.push_back(std::move(variable));
    launch.emplace(TRY(Launch::start(options.command, environment)));
  }
  const pid_t launched = launch ? launch->pid() : 0;
  Interrupts interrupts;
  const InterruptDeferral deferral([&](int signal, bool from_terminal) {
    interrupts.heard(signal, from_terminal, launched);
  });

  SamplingLoop engine(engine_options, {}, log);
  engine.add(options.pid ? *options.pid : launched);
  const std::unique_ptr<Progress> progress =
      options.pid ? session.progress({.label = "Profiling"}) : nullptr;
  TRY(engine.run([&] {
    if (progress)
      progress->advance(0);
    if (launch)
      return !launch->poll();
    return interrupts.count == 0;
  }));
  if (progress)
    progress->finish();
  const int status = launch ? launch->wait() : 0;
  if (!engine.trouble().empty())
    session.complain(engine.trouble());
  if (!session.options().quiet || session.options().json)
    summarise_log(name, session, launch && !session.options().json);
  const std::string failure = describe_failure(status);
  if (!failure.empty())
    session.complain(
        fmt::format("{} ended with {}", options.command[0], failure));
  if (interrupts.count > 0 && launch)
    return static_cast<Exit>(130);
  return failure.empty() ? Exit::kWell : Exit::kFound;
}

Result<Exit> run(const ProfileOptions& options, Session& session) {
  if (options.command.empty() && !options.pid)
    return fail(ErrorKind::kUsage,
                "nothing to profile: give -- COMMAND or --pid N (postflight "
                "profile --help)");
  if (!options.command.empty() && options.pid)
    return fail(ErrorKind::kUsage, "give either --pid or a command, not both");
  return take_profile(options, session);
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
