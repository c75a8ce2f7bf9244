#include "profile/engine/sampling_loop.h"

#include <algorithm>
#include <ctime>
#include <random>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "profile/engine/external_engine.h"
#include "profile/engine/thread_watch.h"
#include "profile/process/pid_namespace.h"

namespace postflight {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kLookForChildren{20};
// Looking takes at most one part in so many of the time: each thread of a
// process has a list of its own.
constexpr int kMostLooking = 200;
// Between ticks that no engine needs: agents have their own clock, and their
// rings have space for much more.
constexpr milliseconds kDrain{25};
// While processes begin, which need slots, or follow the phases of others.
constexpr milliseconds kFollow{5};
// Ticks while an interpreter is about to start.
constexpr milliseconds kStarting{1};
// The most that a crash loses.
constexpr milliseconds kFlush{200};
// A claim whose process is not found by then has no process that we may see.
constexpr milliseconds kKeepClaims{500};

}  // namespace

SamplingLoop::SamplingLoop(const SamplingOptions& options,
                           const Context& context, ProfileLogWriter& log)
    : options_(options),
      context_(context),
      log_(log),
      own_namespace_(pid_namespace(::getpid())) {}

void SamplingLoop::add(pid_t pid, bool whole) {
  auto& process = processes_[pid];
  if (process == nullptr)
    process = std::make_unique<SampledProcess>(pid, whole, options_, context_,
                                               locator_, modules_, processor_,
                                               profile_);
}

void SamplingLoop::look_for_children(Time now) {
  if (!options_.children || now < next_children_)
    return;
  // Those that are found at first may have been there before.
  const bool first = next_children_ == Time();
  const Time begun = std::chrono::steady_clock::now();
  std::map<pid_t, Parent> found;
  for (const auto& [pid, process] : processes_)
    for (const ProcessChild& child : process_children(pid))
      found[child.pid] = {.pid = pid, .thread = child.started_by};
  const Time read = std::chrono::steady_clock::now();
  next_children_ = now + std::max<nanoseconds>(kLookForChildren,
                                               kMostLooking * (read - begun));
  for (const auto& [child, parent] : found) {
    const auto above = processes_.find(parent.pid);
    const bool whole =
        !first || (above != processes_.end() && above->second->is_whole());
    add(child, whole);
    parents_[child] = parent;
  }
}

// The process that has made a claim; null if it is not known yet.
SampledProcess* SamplingLoop::claimant(const AgentClaim& claim) {
  const auto parent = claimed_by_.find(claim.parent_claim);
  const auto add_child = [&](pid_t pid) {
    add(pid, true);
    if (claim.parent_claim != 0 && parent != claimed_by_.end())
      parents_[pid] = {.pid = parent->second, .thread = claim.parent_tid};
    return processes_.at(pid).get();
  };
  if (claim.pid_namespace == 0 || claim.pid_namespace == own_namespace_) {
    // Whoever knows the arena's token descends from what was launched.
    if (processes_.contains(claim.pid) || options_.children)
      return add_child(claim.pid);
    return nullptr;
  }
  // In a container it calls itself by another number than we do.
  for (const auto& [pid, process] : processes_)
    if (pid_namespace(pid) == claim.pid_namespace &&
        innermost_pid(pid, pid) == claim.pid)
      return process.get();
  return nullptr;
}

void SamplingLoop::look_for_claims() {
  if (options_.arena == nullptr)
    return;
  options_.arena->keep_ready();
  const std::vector<AgentClaim> fresh = options_.arena->take_claims();
  follows_ = follows_ || !fresh.empty();
  claims_.insert(claims_.end(), fresh.begin(), fresh.end());
  if (claims_.empty())
    return;
  // Parents before their children.
  std::ranges::sort(claims_, {}, &AgentClaim::claim);
  if (!fresh.empty())
    next_children_ = std::min(next_children_, Time() + nanoseconds(1));
  const Time now = std::chrono::steady_clock::now();
  std::erase_if(claims_, [&](AgentClaim& claim) {
    SampledProcess* const process = claimant(claim);
    if (process == nullptr) {
      if (claim_times_.try_emplace(claim.slot, now).first->second +
              kKeepClaims >
          now)
        return false;
      claim_times_.erase(claim.slot);
      options_.arena->release(claim.slot);
      return true;
    }
    claim_times_.erase(claim.slot);
    Result<AgentRing> ring = options_.arena->ring(claim.slot);
    if (!ring)
      return true;
    // What its program before exec has left.
    if (process->claim()) {
      process->sample(now, taken_);
      options_.arena->release(process->claim()->slot);
    }
    const auto parent = claimed_by_.find(claim.parent_claim);
    const auto above = parent == claimed_by_.end()
                           ? processes_.end()
                           : processes_.find(parent->second);
    process->use_ring(
        *std::move(ring), claim,
        above == processes_.end() ? nullptr : above->second.get());
    claimed_by_[claim.claim] = process->pid();
    return true;
  });
}

void SamplingLoop::end(const SampledProcess& process) {
  ended_.add(process.counts());
  note_process(process);
  sampled_ns_.erase(process.pid());
  if (process.claim() && options_.arena != nullptr) {
    claimed_by_.erase(process.claim()->claim);
    options_.arena->release(process.claim()->slot);
  }
}

// One line for each process says what it has used, beside what was sampled.
void SamplingLoop::note_process(const SampledProcess& process) {
  const CpuTime used = process.used();
  const auto sampled = sampled_ns_.find(process.pid());
  ProfileProcess line = {.rank = options_.rank,
                         .pid = process.pid(),
                         .command = profile_.text(process.command()),
                         .user_ns = used.user_ns,
                         .system_ns = used.system_ns};
  if (sampled != sampled_ns_.end())
    line.sampled_ns = sampled->second;
  std::string why = process.agent_trouble();
  if (why.empty() && process.claim() && process.counts().lost != 0)
    why = fmt::format("{} samples were lost", process.counts().lost);
  line.why = profile_.text(why);
  log_.tables(profile_.profile());
  log_.process(line);
}

void SamplingLoop::sleep_until(Time time) const {
  const nanoseconds left = time - std::chrono::steady_clock::now();
  if (left <= nanoseconds(0))
    return;
  const timespec spec = {
      .tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
      .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
  pollfd watched = {wake_by_, POLLIN, 0};
  // Interrupted, or woken early: a tick comes early then.
  ::ppoll(&watched, 1, &spec, nullptr);
}

void SamplingLoop::inherit_phases() {
  for (const auto& [child, parent] : parents_) {
    const auto below = processes_.find(child);
    const auto above = processes_.find(parent.pid);
    if (below != processes_.end() && above != processes_.end()) {
      const std::uint32_t phase = above->second->phase_of(parent.thread);
      below->second->inherit_phase(phase);
      follows_ = follows_ || phase != 0;
    }
  }
}

bool SamplingLoop::wanted(std::uint32_t phase) {
  if (options_.phase_filter == nullptr)
    return true;
  const auto [known, fresh] = wanted_phases_.try_emplace(phase, false);
  if (fresh)
    known->second = phase != 0 && options_.phase_filter->keeps(
                                      profile_.profile().phase_name(phase),
                                      profile_.profile().phase_frame_id(phase));
  return known->second;
}

void SamplingLoop::note_engine(const SampledProcess& process) {
  if (engine_noted_ || !process.engine_decided())
    return;
  log_.note("engine", process.engine().title());
  if (!process.agent_trouble().empty())
    log_.note("engine_why", process.agent_trouble());
  else if (options_.arena != nullptr)
    log_.note("engine_why", "launched with the agent, and perf events work");
  engine_noted_ = true;
}

void SamplingLoop::tick(Time now, nanoseconds passed) {
  look_for_children(now);
  taken_.clear();
  follows_ = false;
  look_for_claims();
  if (!options_.folder.empty())
    inherit_phases();
  // A forked process looks at its parent first.
  std::vector<pid_t> gone;
  for (const auto& known : processes_) {
    const bool alive = known.second->sample(now, taken_);
    if (!known.second->trouble().empty())
      trouble_ = known.second->trouble();
    if (python_.empty() && known.second->python()) {
      python_ = version_text(known.second->python()->version);
      log_.note("python", python_);
    }
    if (known.second->python() || options_.native)
      note_engine(*known.second);
    if (!alive)
      gone.push_back(known.first);
  }
  for (const ProfileSample& sample : taken_)
    sampled_ns_[profile_.profile().threads[sample.thread].pid] +=
        sample.weight_ns != 0 ? sample.weight_ns
                              : static_cast<std::uint64_t>(passed.count());
  for (const pid_t pid : gone) {
    end(*processes_.at(pid));
    processes_.erase(pid);
    parents_.erase(pid);
  }
  log_.tables(profile_.profile());
  const auto since_start = [this](nanoseconds time) {
    return static_cast<std::uint64_t>(
        std::max(time - start_.time_since_epoch(), nanoseconds(0)).count());
  };
  for (ProfileSample& sample : taken_) {
    sample.time_ns = sample.time_ns != 0
                         ? since_start(nanoseconds(
                               static_cast<std::int64_t>(sample.time_ns)))
                         : since_start(now.time_since_epoch());
    if (sample.weight_ns == 0)
      sample.weight_ns = static_cast<std::uint64_t>(passed.count());
  }
  std::ranges::stable_sort(taken_, {}, &ProfileSample::time_ns);
  for (ProfileSample& sample : taken_) {
    if (!wanted(sample.phase)) {
      filtered_ += 1;
      continue;
    }
    // Threads deliver theirs a little late; time in the log does not go back.
    last_time_ = std::max(last_time_, sample.time_ns);
    sample.time_ns = last_time_;
    log_.sample(sample);
    samples_ += 1;
    torn_ += sample.flags.torn ? 1 : 0;
    cut_ += sample.flags.cut ? 1 : 0;
    unreadable_ += sample.flags.unreadable ? 1 : 0;
  }
}

Result<> SamplingLoop::save() {
  log_.counter("samples", samples_);
  SampleCounts counts = ended_;
  for (const auto& [pid, process] : processes_)
    counts.add(process->counts());
  log_.counter("lost", lost_ + counts.lost);
  if (counts.handler_times.count() != 0) {
    log_.counter("handled", counts.handler_times.count());
    log_.counter("handler_ns", counts.handler_times.total_ns());
    log_.counter("handler_median_ns", counts.handler_times.median_ns());
  }
  log_.counter("torn", torn_);
  log_.counter("cut", cut_);
  log_.counter("unreadable", unreadable_);
  log_.counter("unproven", counts.unproven);
  if (options_.native)
    log_.counter("native_cut", counts.native_cut);
  if (options_.phase_filter != nullptr)
    log_.counter("filtered", filtered_);
  return log_.flush();
}

Result<> SamplingLoop::run(const std::function<bool()>& go_on) {
  start_ = std::chrono::steady_clock::now();
  nanoseconds sampled{0};
  Time last = start_;
  // Ticks come at a random moment of each interval, so that no program runs in
  // lockstep with them.
  std::minstd_rand random(std::random_device{}());
  nanoseconds pace = options_.interval;
  Time base = start_;
  const auto next_tick = [&] {
    std::uniform_int_distribution<std::int64_t> within(0, pace.count());
    return base + nanoseconds(within(random));
  };
  Time next = next_tick();
  bool over = false;
  while (!processes_.empty() && !over) {
    const Time asked = std::chrono::steady_clock::now();
    over = !go_on();
    // go_on() may block to pause the profile; that time is not sampled.
    const nanoseconds paused = std::chrono::steady_clock::now() - asked;
    if (paused > options_.interval) {
      last += paused;
      base = last;
      next = next_tick();
    }
    const bool starting =
        std::ranges::any_of(processes_, [asked](const auto& known) {
          return known.second->is_starting(asked);
        });
    // The last tick comes at once: agents have left their samples.
    const bool early = starting && asked + kStarting < next;
    if (!over)
      sleep_until(early ? asked + kStarting : next);
    const Time now = std::chrono::steady_clock::now();
    const nanoseconds passed = now - last;
    tick(now, passed);
    last = now;
    sampled += passed;
    if (early)
      continue;
    base += pace;
    const auto any_process = [this](bool (SampledProcess::*is)() const) {
      return std::ranges::any_of(processes_, [is](const auto& known) {
        return (*known.second.*is)();
      });
    };
    pace = any_process(&SampledProcess::needs_ticks)
               ? options_.interval
               : std::max<nanoseconds>(options_.interval,
                                       follows_ ? kFollow : kDrain);
    // A late tick stands for those that were missed: its samples weigh more.
    const bool loses_ticks = any_process(&SampledProcess::loses_ticks);
    const Time after = std::chrono::steady_clock::now();
    for (; base + pace < after; base += pace)
      lost_ += loses_ticks && !over ? 1 : 0;
    next = std::max(next_tick(), after);
    if (now >= next_flush_) {
      next_flush_ = now + kFlush;
      TRY(save());
    }
    if (options_.duration > nanoseconds(0) && sampled >= options_.duration)
      break;
  }
  processor_.leave();
  if (!engine_noted_) {
    log_.note("engine", ExternalEngine::kTitle);
    if (options_.arena != nullptr)
      log_.note("engine_why",
                "no Python ran; --native shows the frames of other programs");
  }
  for (const auto& [pid, process] : processes_)
    note_process(*process);
  return save();
}

}  // namespace postflight
