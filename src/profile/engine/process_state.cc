#include "profile/engine/process_state.h"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "profile/engine/stack_namer.h"
#include "profile/engine/thread_watch.h"
#include "profile/process/pid_namespace.h"

namespace postflight {
namespace {

using std::chrono::milliseconds;

// A program starts its interpreter within its first moments, or when it calls
// exec; after that, looking less often is enough.
constexpr milliseconds kStart{100};
constexpr milliseconds kYouth{3000};
constexpr milliseconds kLookAtStart{1};
constexpr milliseconds kLookWhenYoung{3};
constexpr milliseconds kLookWhenOld{250};
// New Python threads are noticed sooner, other threads this often.
constexpr milliseconds kRefreshThreads{50};
constexpr milliseconds kLookForPhases{5};
constexpr milliseconds kLookForFirst{5};
// Reading the threads takes at most one part in so many of the time.
constexpr int kMostReading = 200;

}  // namespace

ProcessState::ProcessState(pid_t pid, bool whole,
                           const SamplingOptions& options,
                           const Context& context, PythonLocator& locator,
                           NativeModules& modules, SharedProcessor& processor,
                           ProfileBuilder& profile)
    : pid_(pid),
      whole_(whole),
      options_(options),
      limits_(context.limits),
      locator_(locator),
      modules_(modules),
      processor_(processor),
      profile_(profile),
      memory_(pid) {}

ProcessState::Changes ProcessState::refresh(Time now) {
  if (born_ == Time())
    born_ = now;
  if (!python_)
    look_for_python(now);
  Changes changes;
  const bool had_python = python_.has_value();
  const bool look = now >= next_first_;
  if (look)
    next_first_ = now + kLookForFirst;
  if ((look && first_thread_changed()) || now >= next_refresh_) {
    const Time begun = std::chrono::steady_clock::now();
    read_threads();
    next_refresh_ =
        now + std::max<std::chrono::nanoseconds>(
                  kRefreshThreads,
                  kMostReading * (std::chrono::steady_clock::now() - begun));
    changes = {.threads = true, .python_ended = had_python && !python_};
  }
  if (now >= next_phases_) {
    next_phases_ = now + kLookForPhases;
    open_phases();
  }
  return changes;
}

void ProcessState::look_for_python(Time now) {
  if (now < next_look_)
    return;
  const auto age = now - born_;
  next_look_ = now + (age < kStart   ? kLookAtStart
                      : age < kYouth ? kLookWhenYoung
                                     : kLookWhenOld);
  // This takes long; the thread whose processor we share should not wait for
  // it.
  processor_.leave();
  Result<std::optional<PythonRuntime>> found =
      locator_.find(pid_, memory_, agent_phases_ != nullptr);
  if (!found) {
    if (found.error().kind() == ErrorKind::kUnsupported)
      trouble_ = found.error().message();
    return;
  }
  if (!*found)
    return;
  trouble_.clear();
  python_ = **found;
  codes_ = std::make_unique<CodeReader>(memory_, *python_, limits_);
  next_refresh_ = {};
}

// Python inserts a new thread at the head of its list.
bool ProcessState::first_thread_changed() {
  if (!python_ || agent_phases_ != nullptr)
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

void ProcessState::forget_python() {
  known_phases_.clear();
  seen_phases_.clear();
  phases_.reset();
  codes_.reset();
  python_.reset();
  first_thread_ = 0;
}

void ProcessState::use_agent(const std::byte* phases) {
  agent_phases_ = phases;
  phases_.reset();
  known_phases_.clear();
  seen_phases_.clear();
  next_look_ = {};
}

void ProcessState::inherit(const ProcessState& parent) {
  command_line_ = parent.command_line_;
  first_name_ = parent.first_name_;
  if (!parent.python_)
    return;
  python_ = parent.python_;
  codes_ = std::make_unique<CodeReader>(memory_, *python_, limits_);
}

pid_t ProcessState::host_thread(pid_t tid) {
  if (!foreign_) {
    const std::uint64_t its = pid_namespace(pid_);
    if (its != 0)
      foreign_ = its != pid_namespace(::getpid());
  }
  if (!foreign_.value_or(false))
    return tid;
  if (const auto known = host_threads_.find(tid); known != host_threads_.end())
    return known->second;
  for (const pid_t host : process_threads(pid_))
    if (const auto inside = innermost_pid(pid_, host))
      host_threads_[*inside] = host;
  return host_threads_.try_emplace(tid, 0).first->second;
}

void ProcessState::read_threads() {
  const std::vector<pid_t> tids = process_threads(pid_);
  std::erase_if(host_threads_, [&tids](const auto& known) {
    return std::ranges::find(tids, known.second) == tids.end();
  });
  std::erase_if(threads_, [&tids](const auto& known) {
    return std::ranges::find(tids, known.first) == tids.end();
  });
  if (!tids.empty())
    command_line_ = command_line(pid_);
  open_phases();
  for (const pid_t tid : tids)
    // The profiler does not profile itself.
    if (tid != ::gettid())
      add_thread(tid);
}

ProcessState::Thread& ProcessState::add_thread(pid_t tid) {
  Thread& thread = threads_[tid];
  std::string name = thread_name(pid_, tid);
  // A thread that has ended has no name; keep the one it had.
  if (name.empty() && thread.alone != 0)
    return thread;
  thread.main = tid == pid_;
  std::string given =
      phases_ && !thread.main ? phases_->thread_name(tid) : std::string();
  if (!given.empty())
    name = std::move(given);
  else if (name.empty())
    name = first_name_;
  else if (thread.main)
    first_name_ = name;
  thread.number = profile_.thread({.rank = options_.rank,
                                   .pid = pid_,
                                   .tid = tid,
                                   .process = profile_.text(command_line_),
                                   .name = profile_.text(name)});
  thread.alone = profile_.stack(0, marker(profile_, fmt::format("[{}]", name)));
  return thread;
}

const ProcessState::Thread& ProcessState::thread(pid_t tid) {
  const auto known = threads_.find(tid);
  return known != threads_.end() ? known->second : add_thread(tid);
}

void ProcessState::open_phases() {
  if (phases_)
    return;
  if (agent_phases_ != nullptr) {
    if (auto table = PhaseTableReader::over(agent_phases_))
      phases_.emplace(*std::move(table));
    return;
  }
  if (options_.folder.empty())
    return;
  if (Result<PhaseTableReader> table =
          PhaseTableReader::open(phase_table_path(options_.folder, pid_)))
    phases_.emplace(*std::move(table));
}

std::uint32_t ProcessState::phase_of(pid_t tid, const Runs& runs) {
  if (!phases_)
    return inherited_phase_;
  return phase_number(phases_->phases(tid), runs);
}

std::uint32_t ProcessState::phase_number(std::span<const std::uint32_t> inside,
                                         const Runs& runs) {
  if (inside.empty())
    return inherited_phase_;
  open_phases();
  if (!phases_)
    return inherited_phase_;
  std::vector<std::uint32_t> key = {inherited_phase_};
  for (const std::uint32_t phase : inside) {
    const auto [known, fresh] = seen_phases_.try_emplace(phase);
    if (fresh)
      known->second = phases_->seen(phase);
    if (known->second.owner == 0 || !runs || runs(known->second.owner))
      key.push_back(phase);
  }
  if (const auto known = known_phases_.find(key); known != known_phases_.end())
    return known->second;
  std::uint32_t number = inherited_phase_;
  for (const std::uint32_t phase : std::span(key).subspan(1)) {
    const SeenPhase& seen = seen_phases_.at(phase);
    number = profile_.phase({.parent = number,
                             .name = profile_.text(seen.name),
                             .frame_id = profile_.text(seen.frame_id)});
  }
  known_phases_.emplace(std::move(key), number);
  return number;
}

}  // namespace postflight
