#include "profile/engine/sampled_process.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "profile/engine/agent_engine.h"
#include "profile/engine/external_engine.h"

namespace postflight {
namespace {

// Of the native stack: some hundred frames of the interpreter and below.
constexpr std::size_t kStackCopy = 16 << 10;

}  // namespace

SampledProcess::SampledProcess(pid_t pid, const SamplingOptions& options,
                               const Context& context, PythonLocator& locator,
                               SharedProcessor& processor,
                               ProfileBuilder& profile)
    : state_(pid, options, context, locator, processor, profile),
      engine_(std::make_unique<ExternalEngine>(state_)) {}

SampleCounts SampledProcess::counts() const {
  SampleCounts counts = state_.counts();
  counts.lost += ring_ ? ring_->lost() : 0;
  return counts;
}

void SampledProcess::use_external_engine() {
  agent_runs_ = false;
  agent_trouble_.clear();
  engine_ = std::make_unique<ExternalEngine>(state_);
}

void SampledProcess::look_for_agent() {
  if (!ring_) {
    Result<AgentRing> ring = AgentRing::open(
        state_.options().folder / fmt::format("{}.ring", state_.pid()));
    if (!ring)
      return;
    ring_.emplace(*std::move(ring));
    generation_ = ring_->generation();
  }
  if (ring_->generation() != generation_) {
    generation_ = ring_->generation();
    state_.forget_python();
    use_external_engine();
  }
  if (agent_runs_ || !agent_trouble_.empty() || !state_.python())
    return;
  const AgentState agent = ring_->state();
  if (agent == AgentState::kRefused || agent == AgentState::kClocked)
    agent_trouble_ = fmt::format(
        "perf events are refused ({}); sysctl kernel.perf_event_paranoid=2, or "
        "in a container --cap-add=PERFMON, allows them",
        std::generic_category().message(ring_->error()));
  if (agent != AgentState::kSampling && agent != AgentState::kClocked)
    return;
  agent_runs_ =
      ring_->begin(state_.python()->layout, state_.options().most_frames,
                   state_.options().native ? kStackCopy : 0);
  if (agent_runs_)
    engine_ = std::make_unique<AgentEngine>(state_, *ring_,
                                            agent == AgentState::kClocked);
  else
    agent_trouble_ = fmt::format("Python {} can only be sampled from outside",
                                 version_text(state_.python()->version));
}

bool SampledProcess::sample(Time now, std::vector<ProfileSample>& samples) {
  const ProcessState::Changes changes = state_.refresh(now);
  if (changes.python_ended)
    use_external_engine();
  else if (changes.threads)
    engine_->threads_refreshed();
  if (state_.options().agent)
    look_for_agent();
  engine_->sample(samples);
  return !state_.threads().empty();
}

}  // namespace postflight
