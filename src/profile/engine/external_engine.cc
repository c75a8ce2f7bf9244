#include "profile/engine/external_engine.h"

#include <algorithm>
#include <chrono>

#include <sched.h>

namespace postflight {
namespace {

// A thread may run again before it has been read.
constexpr int kMostAttempts = 3;
// Moving to another processor means waiting for a turn on it, so for each
// sample only this many of the running threads are visited.
constexpr int kMostMoves = 8;
// A thread that has not run for this many ticks is looked at only when its
// process has used more CPU time than its other threads, and otherwise now and
// then.
constexpr int kIdleTicks = 16;
constexpr std::chrono::milliseconds kLookAtAll{500};
// CPU times of the process and of its threads are not read at the same moment.
constexpr std::uint64_t kUnexplained = 500'000;
// A thread that is never seen running is sampled all the same once it has used
// so many intervals.
constexpr std::uint64_t kMostOwed = 16;
// Samples of a thread that wait for their weight.
constexpr std::size_t kMostUnweighed = 64;

}  // namespace

ExternalEngine::ExternalEngine(ProcessState& process,
                               const std::map<pid_t, std::uint64_t>& accounted)
    : process_(process) {
  if (process.options().native)
    native_ = std::make_unique<NativeReader>(process.pid(), process.memory(),
                                             process.modules());
  ExternalEngine::threads_refreshed();
  for (const auto& [tid, ns] : accounted)
    if (const auto known = threads_.find(tid); known != threads_.end())
      known->second.accounted_ns = ns;
}

void ExternalEngine::python_ended() {
  for (auto& [tid, thread] : threads_) {
    thread.states.clear();
    thread.readers.clear();
    thread.namer.reset();
    thread.turns.reset();
  }
  if (native_ != nullptr)
    native_->forget_program();
}

void ExternalEngine::threads_refreshed() {
  std::erase_if(threads_, [this](const auto& known) {
    return !process_.threads().contains(known.first);
  });
  for (const auto& [tid, thread] : process_.threads()) {
    const auto [known, fresh] = threads_.try_emplace(tid, process_.pid(), tid);
    // Time from before the profile is not part of it; a thread that begins
    // later has all of its time in it.
    if (fresh && first_)
      known->second.accounted_ns = known->second.seen_ns =
          process_.whole() ? 0 : known->second.watch.run_ns().value_or(0);
  }
  first_ = first_ && threads_.empty();
  if (!process_.python())
    return;
  std::map<pid_t, std::vector<std::uint64_t>> states;
  for (const PythonThread& found :
       python_threads(process_.memory(), *process_.python()))
    states[process_.host_thread(found.tid)].push_back(found.state);
  for (auto& [tid, found] : states) {
    const auto known = threads_.find(tid);
    if (known == threads_.end() || known->second.states == found)
      continue;
    Thread& thread = known->second;
    thread.turns.reset();
    thread.readers.clear();
    for (const std::uint64_t state : found)
      thread.readers.push_back(std::make_unique<PythonStackReader>(
          process_.memory(), process_.python()->layout, state,
          process_.options().most_frames));
    thread.states = std::move(found);
    thread.namer =
        std::make_unique<StackNamer>(*process_.codes(), process_.profile());
  }
}

PythonStackReader& ExternalEngine::reader(const Thread& thread) const {
  for (std::size_t i = 0; i + 1 < thread.states.size(); ++i)
    if (has_python_frames(process_.memory(), process_.python()->layout,
                          thread.states[i]))
      return *thread.readers[i];
  return *thread.readers.back();
}

// Whether the thread is certain not to run at this moment.
bool ExternalEngine::stands_still(const Thread& thread,
                                  ThreadActivity activity) {
  if (activity == ThreadActivity::kWaiting)
    return true;
  const std::optional<int> processor = thread.watch.processor();
  if (!processor)
    return false;
  if (processor == ::sched_getcpu())
    return true;
  if (moves_++ >= kMostMoves || !process_.processor().join(*processor))
    return false;
  return thread.watch.processor() == ::sched_getcpu();
}

// `turns` was read before `activity`.
const RawStack& ExternalEngine::read_stack(Thread& thread,
                                           ThreadActivity activity,
                                           std::optional<std::uint64_t> turns) {
  for (int attempt = 0; turns && attempt < kMostAttempts; ++attempt) {
    if (stands_still(thread, activity)) {
      const RawStack& stack = reader(thread).read_still();
      if (thread.watch.turns() == turns)
        return stack;
    }
    turns = thread.watch.turns();
    activity = thread.watch.activity();
  }
  ++process_.counts().unproven;
  return reader(thread).read();
}

ProfileSample ExternalEngine::taken(pid_t tid, Thread& thread,
                                    ThreadActivity activity,
                                    std::optional<std::uint64_t> turns) {
  const ProcessState::Thread& known = process_.thread(tid);
  ProfileSample sample = {
      .time_ns = static_cast<std::uint64_t>(
          std::chrono::nanoseconds(
              std::chrono::steady_clock::now().time_since_epoch())
              .count()),
      .thread = known.number,
      .stack = known.alone};
  sample.flags.waiting = activity == ThreadActivity::kWaiting &&
                         process_.options().mode == ProfileMode::kWall;
  // A thread that has not run since has the same stack.
  if (thread.last_stack != 0 && turns && thread.turns == turns &&
      activity == ThreadActivity::kWaiting) {
    sample.stack = thread.last_stack;
  } else if (native_ != nullptr) {
    take_native(tid, thread, activity, turns, sample);
  } else if (!thread.readers.empty()) {
    const RawStack& stack = read_stack(thread, activity, turns);
    check_codes(stack);
    thread.codes = code_addresses_;
    if (stack.cut || stack.state != StackState::kWhole)
      thread.codes.clear();
    sample.flags.torn = stack.state == StackState::kTorn;
    sample.flags.cut = stack.cut;
    sample.flags.unreadable = stack.state == StackState::kUnreadable;
    if (!stack.frames.empty())
      sample.stack = thread.namer->name(stack, 0);
    const bool waits = activity == ThreadActivity::kWaiting &&
                       stack.state == StackState::kWhole && !stack.cut;
    thread.turns = waits ? turns : std::nullopt;
    thread.last_stack = sample.stack;
  }
  sample.phase = process_.phase_of(tid, [&thread](std::uint64_t code) {
    return thread.codes.empty() ||
           std::ranges::binary_search(thread.codes, code);
  });
  return sample;
}

// Python frames alone where the native ones are unavailable.
void ExternalEngine::take_native(pid_t tid, Thread& thread,
                                 ThreadActivity activity,
                                 std::optional<std::uint64_t> turns,
                                 ProfileSample& sample) {
  const bool waits = activity == ThreadActivity::kWaiting;
  RawStack python;
  const auto read_python = [&] {
    if (!thread.readers.empty())
      python = reader(thread).read_still();
  };
  std::optional<NativeStack> native;
  if (waits) {
    read_python();
    native = native_->waiting(tid);
    if (thread.watch.turns() != turns)
      native.reset();
  } else if (process_.options().arena == nullptr) {
    // What was launched with the agent is never stopped.
    native = native_->stopped(tid, read_python);
  }
  if (!native && !thread.readers.empty())
    python = read_stack(thread, activity, turns);
  thread.codes.clear();
  if (!thread.readers.empty()) {
    check_codes(python);
    if (!python.cut && python.state == StackState::kWhole)
      thread.codes = code_addresses_;
  }
  sample.flags.torn = python.state == StackState::kTorn;
  sample.flags.cut = python.cut;
  sample.flags.unreadable =
      !thread.readers.empty() && python.state == StackState::kUnreadable;
  if (native && native->cut)
    ++process_.counts().native_cut;
  if (native && !native->frames.empty())
    sample.stack = merged_stack(python, native->frames, native_->unwinder(),
                                process_.codes(), process_.profile());
  else if (!python.frames.empty() && thread.namer)
    sample.stack = thread.namer->name(python, 0);
  thread.turns = waits && native ? turns : std::nullopt;
  thread.last_stack = sample.stack;
}

// Divides CPU time evenly among samples of a thread.
void ExternalEngine::weigh(Thread& thread, std::uint64_t weight_ns,
                           std::vector<ProfileSample>& taken,
                           std::vector<ProfileSample>& samples) {
  std::uint64_t in_kernel = 0;
  if (const auto system_ns = thread.watch.system_ns()) {
    in_kernel = std::min(weight_ns,
                         *system_ns - std::min(*system_ns, thread.system_ns));
    thread.system_ns += in_kernel;
  }
  for (std::uint64_t left = taken.size(); left > 0; --left) {
    ProfileSample& sample = taken[taken.size() - left];
    sample.weight_ns = weight_ns / left;
    sample.system_ns = std::min(in_kernel / left, sample.weight_ns);
    weight_ns -= sample.weight_ns;
    in_kernel -= sample.system_ns;
    if (sample.weight_ns != 0)
      samples.push_back(sample);
  }
  taken.clear();
}

// Code may have taken the place of other code since a stack was last read.
void ExternalEngine::check_codes(const RawStack& stack) {
  code_addresses_.clear();
  for (const RawFrame& frame : stack.frames)
    code_addresses_.push_back(frame.code);
  std::ranges::sort(code_addresses_);
  code_addresses_.erase(
      std::unique(code_addresses_.begin(), code_addresses_.end()),
      code_addresses_.end());
  process_.codes()->check(code_addresses_);
}

void ExternalEngine::sample_wall(pid_t tid, Thread& thread,
                                 std::vector<ProfileSample>& samples) {
  const std::optional<std::uint64_t> turns =
      !thread.readers.empty() || native_ != nullptr ? thread.watch.turns()
                                                    : std::nullopt;
  const ThreadActivity activity = thread.watch.activity();
  if (activity == ThreadActivity::kGone)
    return;
  samples.push_back(taken(tid, thread, activity, turns));
}

// Takes a sample if the thread runs or waits for its turn. Samples weigh what
// the thread has run; the kernel counts that with some delay, so they may have
// to wait for their weight. What a thread ran that waits by now belongs to its
// next sample.
void ExternalEngine::account(pid_t tid, Thread& thread,
                             std::vector<ProfileSample>& samples) {
  const std::optional<std::uint64_t> run = thread.watch.run_ns();
  // Most threads of most programs.
  if (run && thread.idle >= kIdleTicks && *run == thread.seen_ns &&
      thread.unweighed.empty() && *run <= thread.accounted_ns)
    return;
  const auto turns = thread.watch.turns();
  const ThreadActivity activity = thread.watch.activity();
  const bool running = activity == ThreadActivity::kRunning;
  if (!run) {
    // Without such counts, a thread that runs has run since the last tick.
    if (running)
      samples.push_back(taken(tid, thread, activity, turns));
    return;
  }
  thread.idle = *run > thread.seen_ns ? 0 : thread.idle + 1;
  unexplained_ns_ -=
      std::min(unexplained_ns_, *run - std::min(*run, thread.seen_ns));
  thread.seen_ns = std::max(thread.seen_ns, *run);
  const std::uint64_t owed = *run - std::min(*run, thread.accounted_ns);
  const auto interval =
      static_cast<std::uint64_t>(process_.options().interval.count());
  if (running ? thread.unweighed.size() < kMostUnweighed
              : activity == ThreadActivity::kWaiting &&
                    thread.unweighed.empty() && owed > kMostOwed * interval)
    thread.unweighed.push_back(taken(tid, thread, activity, turns));
  if (owed == 0 || thread.unweighed.empty())
    return;
  thread.accounted_ns = *run;
  weigh(thread, owed, thread.unweighed, samples);
}

void ExternalEngine::sample_cpu(std::vector<ProfileSample>& samples) {
  const std::uint64_t now =
      process_cpu_ns(process_.pid()).value_or(process_ns_);
  unexplained_ns_ += now - std::min(now, process_ns_);
  process_ns_ = std::max(now, process_ns_);
  for (auto& [tid, thread] : threads_)
    if (thread.idle < kIdleTicks)
      account(tid, thread, samples);
  const auto all = static_cast<int>(kLookAtAll / process_.options().interval);
  if (++ticks_ < all && unexplained_ns_ < kUnexplained)
    return;
  // Looking at all of them more often than this costs more than it shows.
  if (ticks_ * process_.options().interval < kLookAtAll / 20 &&
      threads_.size() > 2 * kIdleTicks)
    return;
  ticks_ = 0;
  for (auto& [tid, thread] : threads_)
    if (thread.idle >= kIdleTicks)
      account(tid, thread, samples);
  unexplained_ns_ = 0;
}

void ExternalEngine::sample(std::vector<ProfileSample>& samples) {
  moves_ = 0;
  if (native_ != nullptr)
    native_->let_go();
  if (process_.options().mode == ProfileMode::kCpu) {
    sample_cpu(samples);
    return;
  }
  for (auto& [tid, thread] : threads_)
    sample_wall(tid, thread, samples);
}

bool ExternalEngine::sample_for(pid_t tid, std::uint64_t weight_ns,
                                std::vector<ProfileSample>& samples) {
  const auto found = threads_.find(tid);
  if (found == threads_.end())
    return false;
  moves_ = 0;
  Thread& thread = found->second;
  const auto turns = thread.watch.turns();
  const ThreadActivity activity = thread.watch.activity();
  if (activity == ThreadActivity::kGone)
    return false;
  const CodeReader* const codes = process_.codes();
  const std::uint64_t misses = codes == nullptr ? 0 : codes->misses();
  std::vector<ProfileSample> one = {taken(tid, thread, activity, turns)};
  // The code ended before it could be named; the other engine may know better.
  if (codes != nullptr && codes->misses() != misses)
    return false;
  weigh(thread, weight_ns, one, samples);
  return true;
}

std::string_view ExternalEngine::title() const {
  return native_ != nullptr && process_.options().arena == nullptr
             ? "external, stops running threads for their native stacks"
             : kTitle;
}

std::map<pid_t, std::uint64_t> ExternalEngine::accounted() const {
  std::map<pid_t, std::uint64_t> times;
  for (const auto& [tid, thread] : threads_)
    times[tid] = thread.accounted_ns;
  return times;
}

std::optional<std::uint64_t> ExternalEngine::run_ns(pid_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? std::nullopt : found->second.watch.run_ns();
}

}  // namespace postflight
