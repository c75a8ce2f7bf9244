#include "profile/engine/external_engine.h"

#include <sched.h>

namespace postflight {
namespace {

// A thread may run again before it has been read.
constexpr int kMostAttempts = 3;
// Moving to another processor means waiting for a turn on it, so for each
// sample only this many of the running threads are visited.
constexpr int kMostMoves = 8;

}  // namespace

ExternalEngine::ExternalEngine(ProcessState& process) : process_(process) {
  ExternalEngine::threads_refreshed();
}

void ExternalEngine::threads_refreshed() {
  std::erase_if(threads_, [this](const auto& known) {
    return !process_.threads().contains(known.first);
  });
  for (const auto& [tid, thread] : process_.threads())
    threads_.try_emplace(tid, process_.pid(), tid);
  if (!process_.python())
    return;
  for (const PythonThread& found :
       python_threads(process_.memory(), *process_.python())) {
    const auto known = threads_.find(found.tid);
    if (known == threads_.end() || known->second.state == found.state)
      continue;
    Thread& thread = known->second;
    thread.state = found.state;
    thread.reader = std::make_unique<PythonStackReader>(
        process_.memory(), process_.python()->layout, found.state,
        process_.options().most_frames);
    thread.namer =
        std::make_unique<StackNamer>(*process_.codes(), process_.profile());
  }
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
      const RawStack& stack = thread.reader->read_still();
      if (thread.watch.turns() == turns)
        return stack;
    }
    turns = thread.watch.turns();
    activity = thread.watch.activity();
  }
  ++process_.counts().unproven;
  return thread.reader->read();
}

void ExternalEngine::sample_thread(pid_t tid, Thread& thread,
                                   std::vector<ProfileSample>& samples) {
  const std::optional<std::uint64_t> turns =
      thread.reader != nullptr ? thread.watch.turns() : std::nullopt;
  const ThreadActivity activity = thread.watch.activity();
  if (activity == ThreadActivity::kGone ||
      (activity == ThreadActivity::kWaiting &&
       process_.options().mode == ProfileMode::kCpu))
    return;
  const ProcessState::Thread& known = process_.thread(tid);
  ProfileSample sample = {.thread = known.number,
                          .stack = known.alone,
                          .phase = process_.phase_of(tid)};
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

void ExternalEngine::sample(std::vector<ProfileSample>& samples) {
  moves_ = 0;
  for (auto& [tid, thread] : threads_)
    sample_thread(tid, thread, samples);
}

}  // namespace postflight
