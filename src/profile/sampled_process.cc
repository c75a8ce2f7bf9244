#include "profile/sampled_process.h"

#include <algorithm>

#include <unistd.h>

#include <fmt/format.h>

namespace postflight {
namespace {

using std::chrono::milliseconds;

// A program becomes Python within its first moments, or when it calls exec;
// after that it is looked at less often.
constexpr milliseconds kYouth{3000};
constexpr milliseconds kLookWhenYoung{3};
constexpr milliseconds kLookWhenOld{250};
// New Python threads are seen at once, other threads this often.
constexpr milliseconds kRefreshThreads{50};

}  // namespace

SampledProcess::SampledProcess(pid_t pid, const SamplingOptions& options,
                               PythonLocator& locator, ProfileBuilder& profile)
    : pid_(pid),
      options_(options),
      locator_(locator),
      profile_(profile),
      memory_(pid) {}

void SampledProcess::look_for_python(Time now) {
  if (now < next_look_)
    return;
  next_look_ = now + (now - born_ < kYouth ? kLookWhenYoung : kLookWhenOld);
  Result<std::optional<PythonRuntime>> found = locator_.find(pid_, memory_);
  if (!found) {
    if (found.error().kind() == ErrorKind::kUnsupported)
      trouble_ = found.error().message();
    return;
  }
  if (!*found)
    return;
  trouble_.clear();
  python_ = **found;
  codes_ = std::make_unique<CodeReader>(memory_, *python_);
  next_refresh_ = {};
}

// Python puts a new thread before all others.
bool SampledProcess::threads_changed() {
  if (!python_)
    return false;
  const PythonLayout& layout = python_->layout;
  const auto interpreter = memory_.load<std::uint64_t>(
      python_->address + layout.runtime.interpreters);
  const auto first = interpreter && *interpreter != 0
                         ? memory_.load<std::uint64_t>(
                               *interpreter + layout.interpreter.threads)
                         : std::nullopt;
  if (!first || *first == 0) {
    // It has ended, or become another program.
    for (auto& [tid, thread] : threads_) {
      thread.state = 0;
      thread.reader.reset();
      thread.namer.reset();
    }
    python_.reset();
    codes_.reset();
    first_thread_ = 0;
    return true;
  }
  return std::exchange(first_thread_, *first) != *first;
}

void SampledProcess::refresh_threads(Time now) {
  if (!threads_changed() && now < next_refresh_)
    return;
  next_refresh_ = now + kRefreshThreads;
  const std::vector<pid_t> tids = process_threads(pid_);
  std::erase_if(threads_, [&tids](const auto& known) {
    return std::ranges::find(tids, known.first) == tids.end();
  });
  if (!tids.empty())
    name_ = command_line(pid_);
  if (!options_.phases.empty() && !phases_)
    if (Result<PhaseTableReader> table =
            PhaseTableReader::open(phase_table_path(options_.phases, pid_)))
      phases_.emplace(*std::move(table));
  for (const pid_t tid : tids) {
    // Nobody profiles the profiler.
    if (tid == ::gettid())
      continue;
    const auto [known, fresh] = threads_.try_emplace(tid, pid_, tid);
    const std::string name = thread_name(pid_, tid);
    Thread& thread = known->second;
    thread.number = profile_.thread({.rank = options_.rank,
                                     .pid = pid_,
                                     .tid = tid,
                                     .process = profile_.text(name_),
                                     .name = profile_.text(name)});
    thread.alone =
        profile_.stack(0, marker(profile_, fmt::format("[{}]", name)));
  }
  if (!python_)
    return;
  for (const PythonThread& found : python_threads(memory_, *python_)) {
    const auto known = threads_.find(found.tid);
    if (known == threads_.end() || known->second.state == found.state)
      continue;
    Thread& thread = known->second;
    thread.state = found.state;
    thread.reader = std::make_unique<PythonStackReader>(
        memory_, python_->layout, found.state, options_.most_frames);
    thread.namer = std::make_unique<StackNamer>(*codes_, profile_);
  }
}

std::uint32_t SampledProcess::phase_of(pid_t tid) {
  if (!phases_)
    return inherited_phase_;
  const std::vector<std::uint32_t> inside = phases_->phases(tid);
  if (inside.empty())
    return inherited_phase_;
  const auto [known, fresh] = known_phases_.try_emplace(inside, 0);
  if (fresh)
    for (const std::uint32_t phase : inside) {
      const SeenPhase seen = phases_->seen(phase);
      known->second =
          profile_.phase({.parent = known->second,
                          .name = profile_.text(seen.name),
                          .frame_id = profile_.text(seen.frame_id)});
    }
  return known->second;
}

void SampledProcess::sample_thread(pid_t tid, Thread& thread,
                                   std::vector<ProfileSample>& samples) {
  const ThreadActivity activity = thread.watch.activity();
  if (activity == ThreadActivity::kGone ||
      (activity == ThreadActivity::kWaiting &&
       options_.mode == ProfileMode::kCpu))
    return;
  ProfileSample sample = {
      .thread = thread.number, .stack = thread.alone, .phase = phase_of(tid)};
  sample.flags.waiting = activity == ThreadActivity::kWaiting;
  if (thread.reader != nullptr) {
    const RawStack& stack = thread.reader->read();
    sample.flags.torn = stack.state == StackState::kTorn;
    sample.flags.cut = stack.cut;
    sample.flags.unreadable = stack.state == StackState::kUnreadable;
    if (!stack.frames.empty())
      sample.stack = thread.namer->name(stack, 0);
  }
  samples.push_back(sample);
}

bool SampledProcess::sample(Time now, std::vector<ProfileSample>& samples) {
  if (born_ == Time())
    born_ = now;
  if (!python_)
    look_for_python(now);
  refresh_threads(now);
  for (auto& [tid, thread] : threads_)
    sample_thread(tid, thread, samples);
  return !threads_.empty();
}

}  // namespace postflight
