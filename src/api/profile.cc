#include "api/profile.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/descriptor.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/glob.h"
#include "base/pattern.h"
#include "flight/model/rank_set.h"
#include "profile/engine/agent_image.h"
#include "profile/engine/sampling_loop.h"
#include "profile/phase/helper.h"
#include "profile/process/identity.h"
#include "profile/process/memory.h"

namespace postflight {

using std::chrono::nanoseconds;

ProfileRun::ProfileRun(Private, ProfileRequest request, const Context& context)
    : request_(std::move(request)),
      context_(context),
      sampling_{.interval = request_.interval,
                .duration = request_.duration,
                .mode = request_.mode,
                .most_frames = request_.most_frames,
                .children = request_.children,
                .phase_filter =
                    request_.phases.keeps_all() ? nullptr : &request_.phases,
                .rank = rank_from(process_environment()),
                .native = request_.native} {}

Result<std::unique_ptr<ProfileRun>> ProfileRun::start(ProfileRequest request,
                                                      const Context& context) {
  if (request.command.empty() == !request.pid)
    return fail(ErrorKind::kUsage,
                "a profile needs either a command or a process");
  auto run =
      std::make_unique<ProfileRun>(Private{}, std::move(request), context);
  // Before the file is created, so that a mistyped name does not replace an old
  // profile by an empty one.
  if (run->request_.pid)
    TRY(check_permission(*run->request_.pid));
  else
    TRY(Launch::check(run->request_.command[0]));
  TRY(run->create_log());
  run->write_notes();
  if (!run->request_.pid)
    TRY(run->launch());
  // A process that has itself profiled says where its phases are.
  else if (auto phases = process_environment()("POSTFLIGHT_PHASES"))
    run->sampling_.folder = *std::move(phases);
  return run;
}

Result<> ProfileRun::create_log() {
  file_ = request_.output;
  if (file_.empty())
    file_ = sampling_.rank < 0
                ? "profile.pflog"
                : fmt::format("profile-rank{}.pflog", sampling_.rank);
  asked_for_ = file_;
  std::error_code error;
  // A device is written to, not replaced.
  if (request_.existing == Existing::kReplace ||
      (std::filesystem::exists(file_, error) &&
       !std::filesystem::is_regular_file(file_, error))) {
    log_.emplace(TRY(ProfileLogWriter::create(file_, false)));
    return {};
  }
  const std::string stem =
      (asked_for_.parent_path() / asked_for_.stem()).native();
  constexpr int kMostNames = 10'000;
  for (int number = 1;; ++number) {
    if (number > 1)
      file_ =
          fmt::format("{}-{}{}", stem, number, asked_for_.extension().native());
    Result<ProfileLogWriter> log = ProfileLogWriter::create(file_, true);
    if (!log && std::filesystem::exists(file_, error) && number < kMostNames)
      continue;
    log_.emplace(TRY(std::move(log)));
    return {};
  }
}

// Why samples are taken from outside; empty if they need not be.
std::string_view ProfileRun::why_external() const {
  if (request_.pid)
    return "attached: the agent is loaded when a program starts";
  if (request_.engine == EngineChoice::kExternal)
    return "--engine external";
  if (request_.mode == ProfileMode::kWall)
    return "--mode wall: waiting threads get no signals";
  return {};
}

void ProfileRun::write_notes() {
  log_->note("mode", request_.mode == ProfileMode::kWall ? "wall" : "cpu");
  log_->note("rate",
             fmt::format("{:.4g}",
                         1e9 / static_cast<double>(request_.interval.count())));
  log_->note("host", host_name());
  if (const std::string_view why = why_external(); !why.empty())
    log_->note("engine_why", why);
  if (request_.pid)
    log_->note("pid", std::to_string(*request_.pid));
  else
    log_->note("command", fmt::format("{}", fmt::join(request_.command, " ")));
  log_->note(
      "start_ns",
      std::to_string(
          nanoseconds(std::chrono::system_clock::now().time_since_epoch())
              .count()));
}

Result<> ProfileRun::launch() {
  folder_.emplace(TRY(TemporaryFolder::create()));
  sampling_.folder = folder_->path();
  std::vector<std::string> environment =
      TRY(install_phase_helper(folder_->path(), process_environment()));
  if (why_external().empty())
    TRY(prepare_agent(environment));
  launch_.emplace(TRY(Launch::start(request_.command, environment)));
  forwarding_.emplace(launch_->pid());
  return {};
}

Result<> ProfileRun::prepare_agent(std::vector<std::string>& environment) {
  Result<AgentArena> arena =
      AgentArena::create(request_.interval, request_.native);
  if (!arena) {
    log_->note("engine_why", arena.error().message());
    return {};
  }
  arena_.emplace(*std::move(arena));
  Result<std::vector<std::string>> variables =
      install_agent(folder_->path(), *arena_, process_environment());
  if (!variables) {
    log_->note("engine_why", variables.error().message());
    arena_.reset();
    return {};
  }
  for (std::string& variable : *variables)
    environment.push_back(std::move(variable));
  sampling_.arena = &*arena_;
  return {};
}

void ProfileRun::interrupt(int signal, bool from_terminal) {
  interrupts_.fetch_add(1);
  if (launch_ && !from_terminal)
    ::kill(launch_->pid(), signal);
}

Result<ProfileOutcome> ProfileRun::finish(
    const std::function<void()>& before_sample) {
  const auto start = std::chrono::steady_clock::now();
  SamplingLoop loop(sampling_, context_, *log_);
  loop.add(launch_ ? launch_->pid() : *request_.pid, launch_.has_value());
  const Descriptor end(
      launch_ ? static_cast<int>(::syscall(SYS_pidfd_open, launch_->pid(), 0U))
              : -1);
  loop.wake_by(end.number());
  TRY(loop.run([&] {
    before_sample();
    return launch_ ? !launch_->poll() : interrupts_ == 0;
  }));
  const int status = launch_ ? launch_->wait() : 0;
  log_->note(
      "elapsed_ns",
      std::to_string(
          nanoseconds(std::chrono::steady_clock::now() - start).count()));
  TRY(log_->flush());
  return ProfileOutcome{.file = file_,
                        .samples = loop.samples(),
                        .trouble = loop.trouble(),
                        .failure = describe_failure(status),
                        .status = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                        .interrupted = interrupts_ > 0};
}

ReadProfiles read_profiles(std::span<const std::string> files,
                           const Context& context,
                           const std::function<void()>& after_file) {
  ReadProfiles result;
  ProfileBuilder builder;
  const auto read = [&](const std::string& name) -> Result<> {
    const MappedFile file =
        TRY(MappedFile::open(input_path(name), context.limits));
    return read_profile_log(file.bytes(), name, context.limits, builder)
        .in(name);
  };
  for (const std::string& name : files) {
    if (Result<> added = read(name))
      result.files.push_back(name);
    else
      result.problems.push_back(std::move(added.error()));
    after_file();
  }
  result.profile = std::move(builder.profile());
  return result;
}

namespace {

std::vector<bool> wanted_threads(const ProfileSelection& selection,
                                 const NumberSelection& ranks,
                                 const Profile& profile) {
  std::vector<bool> wanted;
  for (const ProfileThread& thread : profile.threads) {
    const bool named =
        selection.threads.empty() ||
        std::ranges::any_of(selection.threads, [&](const std::string& one) {
          return one == std::to_string(thread.tid) ||
                 glob_matches(one, profile.texts[thread.name]);
        });
    wanted.push_back(named &&
                     (ranks.all() || ranks.has(std::int64_t{thread.rank})));
  }
  return wanted;
}

// For each stack, whether it has a function that matches. A parent is before
// its children.
std::vector<bool> wanted_stacks(const std::optional<Pattern>& function,
                                const Profile& profile) {
  std::vector<bool> matching;
  if (function)
    for (const ProfileFrame& frame : profile.frames)
      matching.push_back(function->found_in(profile.texts[frame.name]));
  std::vector<bool> wanted(profile.stacks.size(), !function);
  for (std::size_t i = 1; function && i < profile.stacks.size(); ++i)
    wanted[i] =
        wanted[profile.stacks[i].parent] || matching[profile.stacks[i].frame];
  return wanted;
}

Result<std::optional<Pattern>> optional_pattern(std::string_view option,
                                                const std::string& text) {
  if (text.empty())
    return std::nullopt;
  return TRY(Pattern::compile(text).in(option));
}

}  // namespace

Result<> select_samples(const ProfileSelection& selection, Profile& profile) {
  const NumberSelection ranks =
      TRY(NumberSelection::parse(selection.ranks).in("--rank"));
  const auto phase = TRY(optional_pattern("--phase", selection.phase));
  const auto function = TRY(optional_pattern("--function", selection.function));
  const std::vector<bool> threads = wanted_threads(selection, ranks, profile);
  const std::vector<bool> stacks = wanted_stacks(function, profile);
  std::vector<bool> phases;
  for (std::uint32_t i = 0; i < profile.phases.size(); ++i)
    phases.push_back(!phase || phase->found_in(profile.phase_name(i)));
  const std::size_t before = profile.samples.size();
  std::erase_if(profile.samples, [&](const ProfileSample& sample) {
    return !threads[sample.thread] || !stacks[sample.stack] ||
           !phases[sample.phase] || (selection.gil && !sample.flags.gil);
  });
  if (profile.samples.empty() && before > 0)
    return fail(ErrorKind::kUsage,
                "none of the {} samples is of these ranks, threads, phases and "
                "functions{}",
                before,
                selection.gil ? ", with the GIL (known from inside only)" : "");
  return {};
}

}  // namespace postflight
