#include "profile/engine/agent_engine.h"

namespace postflight {

void AgentEngine::threads_refreshed() {
  std::erase_if(namers_, [this](const auto& known) {
    return !process_.threads().contains(known.first);
  });
}

void AgentEngine::take(const AgentSample& seen,
                       std::vector<ProfileSample>& samples) {
  const ProcessState::Thread& thread = process_.thread(seen.tid);
  CodeReader& codes = *process_.codes();
  ProfileSample sample = {.time_ns = seen.time_ns,
                          .weight_ns = static_cast<std::uint64_t>(
                              process_.options().interval.count()),
                          .thread = thread.number,
                          .stack = thread.alone,
                          .phase = process_.phase_number(seen.phases)};
  process_.counts().handler_times.add(seen.handler_ns);
  seen.to(stack_);
  sample.flags.torn = seen.torn;
  sample.flags.cut = seen.cut;
  if (!seen.stack.empty()) {
    if (unwinder_ == nullptr)
      unwinder_ = std::make_unique<NativeUnwinder>(process_.pid());
    sample.stack =
        merged_stack(stack_, unwinder_->unwind(seen.registers, seen.stack),
                     *unwinder_, codes, process_.profile());
  } else if (!stack_.frames.empty()) {
    StackNamer& namer =
        namers_.try_emplace(seen.tid, codes, process_.profile()).first->second;
    sample.stack = namer.name(stack_, 0);
  }
  samples.push_back(sample);
}

void AgentEngine::sample(std::vector<ProfileSample>& samples) {
  ring_.drain(
      [&](const AgentSample& seen) { take(seen, samples); },
      [&](std::span<const MemoryCopy> code) { process_.codes()->learn(code); });
}

}  // namespace postflight
