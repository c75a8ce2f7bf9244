#include "profile/engine/sampled_process.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <sched.h>
#include <unistd.h>

#include "profile/engine/stack_merger.h"

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
constexpr milliseconds kLookForPhases{5};
// Of the C stack: some hundred frames of the interpreter and below.
constexpr std::size_t kStackCopy = 16 << 10;
// A thread may run again before it has been read.
constexpr int kMostAttempts = 3;
// Going to another processor means to wait for a turn on it. Of many threads
// that run, only as many are visited for each sample.
constexpr int kMostMoves = 8;

}  // namespace

SampledProcess::SampledProcess(pid_t pid, const SamplingOptions& options,
                               PythonLocator& locator,
                               SharedProcessor& processor,
                               ProfileBuilder& profile)
    : pid_(pid),
      options_(options),
      locator_(locator),
      processor_(processor),
      profile_(profile),
      memory_(pid) {}

void SampledProcess::look_for_python(Time now) {
  if (now < next_look_)
    return;
  next_look_ = now + (now - born_ < kYouth ? kLookWhenYoung : kLookWhenOld);
  // This takes long; whose processor we share should not wait for it.
  processor_.leave();
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
    forget_python();
    return true;
  }
  return std::exchange(first_thread_, *first) != *first;
}

std::map<pid_t, SampledProcess::Thread>::iterator SampledProcess::add_thread(
    pid_t tid) {
  const auto known = threads_.try_emplace(tid, pid_, tid).first;
  const std::string name = thread_name(pid_, tid);
  Thread& thread = known->second;
  // A name that is gone with its thread is not worth forgetting the old one.
  if (name.empty() && thread.alone != 0)
    return known;
  thread.number = profile_.thread({.rank = options_.rank,
                                   .pid = pid_,
                                   .tid = tid,
                                   .process = profile_.text(name_),
                                   .name = profile_.text(name)});
  thread.alone = profile_.stack(0, marker(profile_, fmt::format("[{}]", name)));
  return known;
}

void SampledProcess::open_phases() {
  if (options_.phases.empty() || phases_)
    return;
  if (Result<PhaseTableReader> table =
          PhaseTableReader::open(phase_table_path(options_.phases, pid_)))
    phases_.emplace(*std::move(table));
}

// It has ended, or become another program.
void SampledProcess::forget_python() {
  for (auto& [tid, thread] : threads_) {
    thread.state = 0;
    thread.reader.reset();
    thread.namer.reset();
  }
  agent_namers_.clear();
  unwinder_.reset();
  known_phases_.clear();
  phases_.reset();
  python_.reset();
  codes_.reset();
  first_thread_ = 0;
  agent_runs_ = false;
  agent_trouble_.clear();
}

void SampledProcess::look_for_agent() {
  if (!ring_) {
    Result<AgentRing> ring =
        AgentRing::open(options_.phases / fmt::format("{}.ring", pid_));
    if (!ring)
      return;
    ring_.emplace(*std::move(ring));
    generation_ = ring_->generation();
  }
  if (ring_->generation() != generation_) {
    generation_ = ring_->generation();
    forget_python();
  }
  if (agent_runs_ || !agent_trouble_.empty() || !python_)
    return;
  const AgentState state = ring_->state();
  if (state == AgentState::kRefused || state == AgentState::kClocked)
    agent_trouble_ = fmt::format(
        "no perf events ({}); sysctl kernel.perf_event_paranoid=2, or in a "
        "container --cap-add=PERFMON, allows them",
        std::generic_category().message(ring_->error()));
  if (state != AgentState::kSampling && state != AgentState::kClocked)
    return;
  agent_runs_ = ring_->begin(python_->layout, options_.most_frames,
                             options_.native ? kStackCopy : 0);
  if (!agent_runs_)
    agent_trouble_ = fmt::format("Python {} is sampled from outside only",
                                 version_text(python_->version));
}

void SampledProcess::take(const AgentSample& seen,
                          std::vector<ProfileSample>& samples) {
  // A thread can be older than our list of them, or gone already.
  auto known = threads_.find(seen.tid);
  if (known == threads_.end())
    known = add_thread(seen.tid);
  Thread& thread = known->second;
  ProfileSample sample = {
      .time_ns = seen.time_ns,
      .weight_ns = static_cast<std::uint64_t>(options_.interval.count()),
      .thread = thread.number,
      .stack = thread.alone,
      .phase = phase_number(seen.phases)};
  handler_times_.add(seen.handler_ns);
  seen.to(agent_stack_);
  sample.flags.torn = seen.torn;
  sample.flags.cut = seen.cut;
  if (!seen.stack.empty() && codes_ != nullptr) {
    if (unwinder_ == nullptr)
      unwinder_ = std::make_unique<NativeUnwinder>(pid_);
    sample.stack = merged_stack(agent_stack_,
                                unwinder_->unwind(seen.registers, seen.stack),
                                *unwinder_, *codes_, profile_);
  } else if (!agent_stack_.frames.empty() && codes_ != nullptr) {
    std::unique_ptr<StackNamer>& namer = agent_namers_[seen.tid];
    if (namer == nullptr)
      namer = std::make_unique<StackNamer>(*codes_, profile_);
    sample.stack = namer->name(agent_stack_, 0);
  }
  samples.push_back(sample);
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
    add_thread(tid);
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
  return phase_number(phases_->phases(tid));
}

std::uint32_t SampledProcess::phase_number(
    std::span<const std::uint32_t> inside) {
  if (inside.empty() || !phases_)
    return inherited_phase_;
  const auto [known, fresh] = known_phases_.try_emplace(
      std::vector<std::uint32_t>(inside.begin(), inside.end()), 0);
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

// Whether the thread does not run at this moment, for sure.
bool SampledProcess::stands_still(const Thread& thread,
                                  ThreadActivity activity) {
  if (activity == ThreadActivity::kWaiting)
    return true;
  const std::optional<int> processor = thread.watch.processor();
  if (!processor)
    return false;
  if (processor == ::sched_getcpu())
    return true;
  if (moves_++ >= kMostMoves || !processor_.join(*processor))
    return false;
  return thread.watch.processor() == ::sched_getcpu();
}

// `turns` was asked for before `activity`.
const RawStack& SampledProcess::read_stack(Thread& thread,
                                           ThreadActivity activity,
                                           std::optional<std::uint64_t> turns) {
  for (int attempt = 0; turns && attempt < kMostAttempts; ++attempt) {
    if (stands_still(thread, activity)) {
      const RawStack& stack = thread.reader->read_still();
      if (thread.watch.turns() == turns)
        return stack;
    }
    turns = thread.watch.turns();
    activity = thread.watch.activity();
  }
  ++unproven_;
  return thread.reader->read();
}

void SampledProcess::sample_thread(pid_t tid, Thread& thread,
                                   std::vector<ProfileSample>& samples) {
  const std::optional<std::uint64_t> turns =
      thread.reader != nullptr ? thread.watch.turns() : std::nullopt;
  const ThreadActivity activity = thread.watch.activity();
  if (activity == ThreadActivity::kGone ||
      (activity == ThreadActivity::kWaiting &&
       options_.mode == ProfileMode::kCpu))
    return;
  ProfileSample sample = {
      .thread = thread.number, .stack = thread.alone, .phase = phase_of(tid)};
  sample.flags.waiting = activity == ThreadActivity::kWaiting;
  if (thread.reader != nullptr) {
    const RawStack& stack = read_stack(thread, activity, turns);
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
  if (now >= next_phases_) {
    next_phases_ = now + kLookForPhases;
    open_phases();
  }
  if (options_.agent)
    look_for_agent();
  if (agent_runs_) {
    ring_->drain([&](const AgentSample& seen) { take(seen, samples); },
                 [&](std::span<const MemoryCopy> code) {
                   if (codes_ != nullptr)
                     codes_->learn(code);
                 });
  } else {
    moves_ = 0;
    for (auto& [tid, thread] : threads_)
      sample_thread(tid, thread, samples);
  }
  return !threads_.empty();
}

}  // namespace postflight
