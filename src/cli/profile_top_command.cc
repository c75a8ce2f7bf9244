#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "api/profile.h"
#include "base/interrupt.h"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "profile/engine/sampling_interval.h"
#include "report/profile/report.h"

namespace postflight {
namespace {

struct TopOptions {
  std::int32_t pid = 0;
  std::string rate = "99";
  std::string mode = "cpu";
  std::string duration;
  std::size_t top = 15;
  bool no_children = false;
};

constexpr std::chrono::seconds kRefresh{1};
// Long enough that a slow rate has samples in it.
constexpr std::uint64_t kWindowNs = 3'000'000'000;

// Shows the last seconds of a profile that is being taken, each second.
class TopScreen {
 public:
  TopScreen(std::string file, const TopOptions& options, Session& session)
      : file_(std::move(file)),
        options_(options),
        session_(session),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  void run(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, kRefresh,
                          [&] { return stop.stop_requested(); }))
      draw();
  }

  void draw() {
    ReadProfiles read = read_profiles({&file_, 1}, session_.context());
    Profile& profile = read.profile;
    // The log is still being written.
    profile.findings.clear();
    const std::size_t taken = profile.samples.size();
    const std::uint64_t end =
        profile.samples.empty() ? 0 : profile.samples.back().time_ns;
    std::erase_if(profile.samples, [end](const ProfileSample& sample) {
      return sample.time_ns + kWindowNs < end;
    });
    const Terminal& terminal = session_.terminal();
    std::string text;
    {
      Output out([&text](std::string_view piece) { text += piece; });
      profile_format(session_.options().json ? "json" : "text")
          .write(profile,
                 {.terminal = terminal, .top = options_.top, .phases = true},
                 out);
    }
    if (!session_.options().json)
      text = fmt::format("{}process {}: {} samples, of which the last {} s\n",
                         terminal.stdout_is_terminal && !terminal.dumb
                             ? "\x1b[H\x1b[J"
                             : "",
                         options_.pid, taken, kWindowNs / 1'000'000'000) +
             text + (terminal.stdout_is_terminal ? "" : "\n");
    session_.print(text);
    std::fflush(stdout);
  }

  std::string file_;
  const TopOptions& options_;
  Session& session_;
  std::jthread thread_;  // last: it uses the others
};

Result<Exit> run(const TopOptions& options, Session& session) {
  const TemporaryFolder folder = TRY(TemporaryFolder::create());
  ProfileRequest request;
  request.pid = options.pid;
  request.mode =
      options.mode == "wall" ? ProfileMode::kWall : ProfileMode::kCpu;
  request.children = !options.no_children;
  request.interval = TRY(parse_sampling_interval(options.rate));
  if (!options.duration.empty())
    request.duration = TRY(parse_profile_duration(options.duration));
  request.output = folder.path() / "top.pflog";
  const std::unique_ptr<ProfileRun> profile =
      TRY(ProfileRun::start(std::move(request), session.context()));
  const InterruptDeferral deferral([&](int signal, bool from_terminal) {
    profile->interrupt(signal, from_terminal);
  });
  std::string trouble;
  {
    const TopScreen screen(profile->file(), options, session);
    trouble = TRY(profile->finish()).trouble;
  }
  if (!trouble.empty())
    session.complain(trouble);
  return Exit::kWell;
}

}  // namespace

Command profile_top_command() {
  return {
      .name = "top",
      .sentence =
          "Shows live where a process spends its time, each second.\n"
          "It shows the last 3 seconds and stores nothing; Ctrl-C ends it.",
      .examples = {{"postflight profile top --pid 4711", "CPU time"},
                   {"postflight profile top --pid 4711 --mode wall",
                    "include waiting"},
                   {"postflight profile top --pid 4711 --duration 10s | tee x",
                    "in a pipe"}},
      .declare = [](CommandArguments& arguments) {
        const auto options = std::make_shared<TopOptions>();
        arguments.option("--pid", options->pid, "N", "The process to watch")
            .required();
        arguments.option("--rate", options->rate, "HZ",
                         "Samples per second (99), or an interval: 5ms");
        arguments
            .option("--mode", options->mode, "cpu|wall",
                    "CPU time of running threads, or wall time of all")
            .one_of({"cpu", "wall"});
        arguments.option("--duration", options->duration, "TIME",
                         "Stop after this time: 30s, 5m");
        arguments.option("--top", options->top, "N", "Functions shown (15)")
            .between(1, 100'000);
        arguments.flag("--no-children", options->no_children,
                       "Do not follow child processes");
        return [options](Session& session) { return run(*options, session); };
      }};
}

}  // namespace postflight
