#include "profile/engine/sampling_loop.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "profile/engine/external_engine.h"

namespace postflight {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kLookForChildren{50};
// Forked workers may live no longer than this.
constexpr milliseconds kLookForAgents{5};
// The most that a crash loses.
constexpr milliseconds kFlush{200};

void sleep_until(std::chrono::steady_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  timespec spec = {};
  spec.tv_sec = seconds.count();
  spec.tv_nsec = nanoseconds(since - seconds).count();
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &spec, nullptr) ==
         EINTR) {
  }
}

}  // namespace

SamplingLoop::SamplingLoop(const SamplingOptions& options,
                           const Context& context, ProfileLogWriter& log)
    : options_(options), context_(context), log_(log) {}

void SamplingLoop::add(pid_t pid) {
  auto& process = processes_[pid];
  if (process == nullptr)
    process = std::make_unique<SampledProcess>(pid, options_, context_,
                                               locator_, processor_, profile_);
}

void SamplingLoop::look_for_children(Time now) {
  if (!options_.children || now < next_children_)
    return;
  next_children_ = now + kLookForChildren;
  std::map<pid_t, pid_t> found;
  for (const auto& [pid, process] : processes_)
    for (const pid_t child : process_children(pid))
      found[child] = pid;
  for (const auto& [child, parent] : found) {
    add(child);
    parents_[child] = parent;
  }
}

// An agent announces itself by the file of its ring, sooner than its process is
// found among the children. Files of processes that have ended are removed: a
// program may fork without end.
void SamplingLoop::look_for_agents(Time now) {
  if (!options_.agent || now < next_agents_)
    return;
  next_agents_ = now + kLookForAgents;
  std::error_code error;
  std::filesystem::directory_iterator entry(options_.folder, error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() != ".ring")
      continue;
    const std::string name = entry->path().stem();
    pid_t pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    if (pid <= 0 || processes_.contains(pid))
      continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH)
      remove_files(pid);
    else if (options_.children)
      add(pid);
  }
}

void SamplingLoop::remove_files(pid_t pid) const {
  if (!options_.agent)
    return;
  std::error_code ignored;
  for (const char* const suffix : {"ring", "phases"})
    std::filesystem::remove(options_.folder / fmt::format("{}.{}", pid, suffix),
                            ignored);
}

void SamplingLoop::inherit_phases() {
  for (const auto& [child, parent] : parents_) {
    const auto below = processes_.find(child);
    const auto above = processes_.find(parent);
    if (below != processes_.end() && above != processes_.end())
      below->second->inherit_phase(above->second->phase_of(0));
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
  engine_noted_ = true;
}

void SamplingLoop::tick(Time now, nanoseconds passed) {
  look_for_agents(now);
  look_for_children(now);
  if (!options_.folder.empty())
    inherit_phases();
  taken_.clear();
  std::erase_if(processes_, [&](const auto& known) {
    const bool alive = known.second->sample(now, taken_);
    if (!known.second->trouble().empty())
      trouble_ = known.second->trouble();
    if (python_.empty() && known.second->python()) {
      python_ = version_text(known.second->python()->version);
      log_.note("python", python_);
    }
    if (known.second->python())
      note_engine(*known.second);
    if (!alive) {
      ended_.add(known.second->counts());
      remove_files(known.first);
    }
    return !alive;
  });
  log_.tables(profile_.profile());
  const auto since_start = [this](nanoseconds time) {
    return static_cast<std::uint64_t>(
        std::max(time - start_.time_since_epoch(), nanoseconds(0)).count());
  };
  for (ProfileSample& sample : taken_) {
    if (sample.weight_ns != 0) {
      sample.time_ns =
          since_start(nanoseconds(static_cast<std::int64_t>(sample.time_ns)));
    } else {
      sample.time_ns = since_start(now.time_since_epoch());
      sample.weight_ns = static_cast<std::uint64_t>(passed.count());
    }
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
  if (options_.phase_filter != nullptr)
    log_.counter("filtered", filtered_);
  return log_.flush();
}

Result<> SamplingLoop::run(const std::function<bool()>& go_on) {
  start_ = std::chrono::steady_clock::now();
  nanoseconds sampled{0};
  Time last = start_;
  Time next = start_ + options_.interval;
  while (!processes_.empty()) {
    const Time asked = std::chrono::steady_clock::now();
    if (!go_on())
      break;
    // go_on() may block to pause the profile; that time is not sampled.
    const nanoseconds paused = std::chrono::steady_clock::now() - asked;
    if (paused > options_.interval) {
      last += paused;
      next = last + options_.interval;
    }
    sleep_until(next);
    const Time now = std::chrono::steady_clock::now();
    const nanoseconds passed = now - last;
    tick(now, passed);
    last = now;
    next += options_.interval;
    // A late tick stands for those that were missed: its samples weigh more.
    // Agents do not depend on ticks.
    const bool needs_ticks = std::ranges::any_of(
        processes_,
        [](const auto& known) { return known.second->needs_ticks(); });
    const Time after = std::chrono::steady_clock::now();
    for (; next < after; next += options_.interval)
      lost_ += needs_ticks ? 1 : 0;
    if (now >= next_flush_) {
      next_flush_ = now + kFlush;
      TRY(save());
    }
    sampled += passed;
    if (options_.duration > nanoseconds(0) && sampled >= options_.duration)
      break;
  }
  processor_.leave();
  if (!engine_noted_)
    log_.note("engine", ExternalEngine::kTitle);
  return save();
}

}  // namespace postflight
