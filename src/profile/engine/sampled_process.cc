#include "profile/engine/sampled_process.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "profile/engine/agent_engine.h"
#include "profile/engine/external_engine.h"
#include "profile/engine/thread_watch.h"

namespace postflight {
namespace {

// Of the native stack at first; more once a stack was deeper.
constexpr std::size_t kStackCopy = 64 << 10;
// Between the last words of an agent and the end of its process.
constexpr std::chrono::milliseconds kEnd{50};
constexpr std::chrono::milliseconds kLookAtTimes{50};
// The kernel adds up the clocks of all threads.
constexpr std::chrono::milliseconds kLookAtClock{5};
// From the start of a process to that of its interpreter.
constexpr std::chrono::milliseconds kInterpreterStart{100};

}  // namespace

SampledProcess::SampledProcess(pid_t pid, bool whole,
                               const SamplingOptions& options,
                               const Context& context, PythonLocator& locator,
                               NativeModules& modules,
                               SharedProcessor& processor,
                               ProfileBuilder& profile)
    : state_(pid, whole, options, context, locator, modules, processor,
             profile),
      engine_(std::make_unique<ExternalEngine>(state_)) {
  if (whole)
    at_first_ = CpuTime{};
}

SampleCounts SampledProcess::counts() const {
  SampleCounts counts = state_.counts();
  counts.lost += lost_ + (ring_ ? ring_->lost() : 0);
  return counts;
}

CpuTime SampledProcess::used() const {
  CpuTime used = used_;
  const CpuTime before = at_first_.value_or(CpuTime{});
  used.user_ns -= std::min(used.user_ns, before.user_ns);
  used.system_ns -= std::min(used.system_ns, before.system_ns);
  return used;
}

void SampledProcess::use_external_engine() {
  agent_runs_ = false;
  agent_trouble_.clear();
  state_.use_agent(nullptr);
  engine_ = std::make_unique<ExternalEngine>(state_, engine_->accounted());
}

void SampledProcess::use_ring(AgentRing ring, const AgentClaim& claim,
                              const SampledProcess* parent) {
  if (ring_) {
    lost_ += ring_->lost();
    use_external_engine();
    engine_->python_ended();
    state_.forget_python();
  }
  state_.use_agent(nullptr);
  ring_.emplace(std::move(ring));
  claim_ = claim;
  ended_.reset();
  born_ = {};
  const AgentState agent = ring_->state();
  if (agent == AgentState::kRefused || agent == AgentState::kClocked)
    agent_trouble_ = fmt::format(
        "perf events are refused ({}); sysctl kernel.perf_event_paranoid=2, or "
        "in a container --cap-add=PERFMON, allows them",
        std::generic_category().message(ring_->error()));
  if (agent != AgentState::kSampling && agent != AgentState::kClocked)
    return;
  if (!state_.python())
    engine_->python_ended();
  if (state_.options().native)
    ring_->set_stack_bytes(kStackCopy);
  state_.use_agent(ring_->phases());
  if (parent != nullptr)
    state_.inherit(parent->state_);
  agent_runs_ = true;
  engine_ = std::make_unique<AgentEngine>(
      state_, *ring_, agent == AgentState::kClocked, engine_->accounted());
}

void SampledProcess::look_after_agent(Time now) {
  if (!agent_runs_)
    return;
  if (state_.python() && !ring_->has_begun() &&
      !ring_->begin(state_.python()->layout, state_.options().most_frames,
                    state_.options().native ? kStackCopy : 0)) {
    agent_trouble_ = fmt::format("Python {} can only be sampled from outside",
                                 version_text(state_.python()->version));
    const std::string trouble = agent_trouble_;
    use_external_engine();
    agent_trouble_ = trouble;
    return;
  }
  // It has called exec, and what it runs now has no agent; or it is about to
  // end.
  if (!ring_->ended()) {
    ended_.reset();
    return;
  }
  if (!ended_)
    ended_ = now;
  if (now - *ended_ < kEnd)
    return;
  engine_->sample(rest_);
  use_external_engine();
  engine_->python_ended();
  state_.forget_python();
}

// The last look before the process ends is what counts, unless its agent says
// more.
void SampledProcess::look_at_clock(Time now) {
  if (now >= next_clock_) {
    next_clock_ = now + kLookAtClock;
    if (const auto ns = process_cpu_ns(state_.pid()))
      used_ns_ = std::max(used_ns_, *ns);
  }
  if (now >= next_look_) {
    next_look_ = now + kLookAtTimes;
    if (const auto times = process_cpu_time(state_.pid())) {
      used_ = *times;
      if (!at_first_)
        at_first_ = used_;
    }
  }
  if (ring_)
    if (const auto ended = ring_->ended();
        ended && ended->total_ns() >= used_.total_ns())
      used_ = *ended;
  // The clock is ahead of the times; what is new divides as before.
  const std::uint64_t known = used_.total_ns();
  if (used_ns_ > known) {
    const double system = known == 0 ? 0.0
                                     : static_cast<double>(used_.system_ns) /
                                           static_cast<double>(known);
    const auto more = static_cast<std::uint64_t>(
        static_cast<double>(used_ns_ - known) * system);
    used_.system_ns += more;
    used_.user_ns += used_ns_ - known - more;
  }
}

bool SampledProcess::is_starting(Time now) const {
  if (state_.options().arena == nullptr || !state_.whole())
    return false;
  const bool waits = ring_ ? agent_runs_ && !ring_->has_begun() : true;
  return waits && now - born_ < kInterpreterStart;
}

bool SampledProcess::sample(Time now, std::vector<ProfileSample>& samples) {
  if (born_ == Time())
    born_ = now;
  const bool had_python = state_.python().has_value();
  const ProcessState::Changes changes = state_.refresh(now);
  if (changes.python_ended || (!had_python && state_.python()))
    engine_->python_ended();
  if (changes.threads)
    engine_->threads_refreshed();
  look_after_agent(now);
  samples.insert(samples.end(), rest_.begin(), rest_.end());
  rest_.clear();
  engine_->sample(samples);
  look_at_clock(now);
  starts_ =
      agent_runs_ && !ring_->has_begun() && now - born_ < kInterpreterStart;
  return !state_.threads().empty();
}

}  // namespace postflight
