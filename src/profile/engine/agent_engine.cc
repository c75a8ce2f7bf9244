#include "profile/engine/agent_engine.h"

#include <algorithm>

#include "profile/engine/thread_watch.h"

namespace postflight {
namespace {

// How many intervals of a thread's CPU time may be unaccounted for: the agent's
// next sample comes within 5/4 of one, and the kernel's counts are late.
constexpr std::uint64_t kMostRest = 3;
constexpr std::uint64_t kLate = 5'000'000;

}  // namespace

AgentEngine::AgentEngine(ProcessState& process, AgentRing& ring, bool clocked,
                         const std::map<pid_t, std::uint64_t>& accounted)
    : process_(process), ring_(ring), clocked_(clocked) {
  const auto main = accounted.find(process.pid());
  if (main == accounted.end() || main->second == 0)
    return;
  // Only one thread lives on through exec; what the others have used is not
  // looked at again.
  threads_[process.pid()].cpu_ns = main->second;
  accounted_ns_ = process_cpu_ns(process.pid()).value_or(0);
}

void AgentEngine::threads_refreshed() {
  std::erase_if(threads_, [this](const auto& known) {
    return !process_.threads().contains(known.first);
  });
  if (outside_ != nullptr)
    outside_->threads_refreshed();
}

std::uint32_t AgentEngine::merged(const AgentSample& seen, CodeReader* codes) {
  if (unwinder_ == nullptr)
    unwinder_ =
        std::make_unique<NativeUnwinder>(process_.pid(), process_.modules());
  const NativeStack native = unwinder_->unwind(seen.registers, seen.stack);
  if (native.cut && seen.stack_cut) {
    ++process_.counts().native_cut;
    // Enough for the next ones.
    stack_bytes_ = std::min<std::size_t>(
        kMostStackBytes, std::max(stack_bytes_, 2 * seen.stack.size()));
    ring_.set_stack_bytes(stack_bytes_);
  }
  return merged_stack(stack_, native.frames, *unwinder_, codes,
                      process_.profile());
}

std::uint32_t AgentEngine::stack_of(const AgentSample& seen,
                                    const ProcessState::Thread& known,
                                    Thread& thread) {
  if (seen.rest)
    return thread.last_stack == 0 ? known.alone : thread.last_stack;
  ProfileBuilder& profile = process_.profile();
  CodeReader* const codes = process_.codes();
  if (codes == nullptr || seen.no_state) {
    if (!seen.stack.empty()) {
      stack_ = {.frames = {}, .state = StackState::kWhole};
      return merged(seen, nullptr);
    }
    if (!known.main || (codes == nullptr && !thread.had_frames))
      return known.alone;
    return profile.stack(
        0, marker(profile,
                  thread.had_frames ? "<python ends>" : "<python starts>"));
  }
  seen.to(stack_);
  thread.had_frames = thread.had_frames || !stack_.frames.empty();
  if (!seen.stack.empty())
    return merged(seen, codes);
  if (stack_.frames.empty())
    return known.main && seen.ending
               ? profile.stack(0, marker(profile, "<python ends>"))
               : known.alone;
  if (!thread.namer)
    thread.namer.emplace(*codes, profile);
  const std::uint32_t stack = thread.namer->name(stack_, 0);
  return seen.garbage
             ? profile.stack(stack, marker(profile, "<garbage collection>"))
             : stack;
}

std::uint32_t AgentEngine::phase_of(const AgentSample& seen) {
  // What is not known of the stack may have the code.
  const bool known = !seen.cut && !seen.torn && !seen.words.empty();
  return process_.phase_number(seen.phases, [&](std::uint64_t code) {
    for (std::size_t i = 0; known && i < seen.words.size(); i += 2)
      if (seen.words[i] == code)
        return true;
    return !known;
  });
}

void AgentEngine::take(const AgentSample& seen,
                       std::vector<ProfileSample>& samples) {
  const pid_t host = process_.host_thread(seen.tid);
  const pid_t tid = host == 0 ? seen.tid : host;
  const ProcessState::Thread& known = process_.thread(tid);
  Thread& thread = threads_[tid];
  // What was sampled from outside up to there is not counted again.
  std::uint64_t outside = 0;
  if (thread.outside_ns != 0) {
    const std::uint64_t fresh =
        seen.cpu_ns - std::min(seen.cpu_ns, thread.cpu_ns);
    outside = std::min(thread.outside_ns,
                       seen.weight_ns - std::min(seen.weight_ns, fresh));
    thread.outside_ns -= outside;
  }
  thread.cpu_ns = std::max(thread.cpu_ns, seen.cpu_ns);
  process_.counts().handler_times.add(seen.handler_ns);
  ProfileSample sample = {.time_ns = seen.time_ns,
                          .weight_ns = seen.weight_ns - outside,
                          .thread = known.number,
                          .stack = stack_of(seen, known, thread),
                          .phase = phase_of(seen)};
  // What was sampled from outside was in the kernel first of all.
  sample.system_ns = std::min(
      sample.weight_ns, seen.system_ns - std::min(seen.system_ns, outside));
  sample.flags.torn = seen.torn;
  sample.flags.cut = seen.cut;
  sample.flags.gil = seen.gil;
  sample.flags.no_gil = seen.no_gil;
  sample.flags.interpreter = seen.interpreter;
  sample.flags.library = seen.library;
  thread.last_stack = sample.stack;
  accounted_ns_ += sample.weight_ns;
  // Nothing else stands for no time.
  if (sample.weight_ns != 0)
    samples.push_back(sample);
}

// `used` by the process as a whole: that is one system call.
void AgentEngine::sample_the_rest(std::uint64_t used,
                                  std::vector<ProfileSample>& samples) {
  const auto interval =
      static_cast<std::uint64_t>(process_.options().interval.count());
  const std::uint64_t most = kMostRest * interval + kLate;
  used -= std::min(used, own_ns_);
  const std::uint64_t rest = used - std::min(used, accounted_ns_);
  if (rest < looked_at_ns_ + most) {
    looked_at_ns_ = std::min(looked_at_ns_, rest);
    return;
  }
  if (outside_ == nullptr)
    outside_ = std::make_unique<ExternalEngine>(process_);
  const pid_t own = clocked_ ? process_.host_thread(ring_.clock_thread()) : 0;
  for (const auto& [tid, known] : process_.threads()) {
    const std::optional<std::uint64_t> run = outside_->run_ns(tid);
    if (tid == own) {
      own_ns_ = std::max(own_ns_, run.value_or(0));
      continue;
    }
    Thread& thread = threads_[tid];
    if (!run || *run < thread.cpu_ns + most)
      continue;
    const std::uint64_t weight = *run - thread.cpu_ns - interval;
    if (!outside_->sample_for(tid, weight, samples))
      continue;
    needs_ticks_ = true;
    samples.back().flags.outside = true;
    thread.cpu_ns += weight;
    thread.outside_ns += weight;
    accounted_ns_ += weight;
  }
  const std::uint64_t left = used - std::min(used, accounted_ns_);
  looked_at_ns_ = left;
}

void AgentEngine::python_ended() {
  for (auto& [tid, thread] : threads_)
    thread.namer.reset();
  unwinder_.reset();
  if (outside_ != nullptr)
    outside_->python_ended();
}

std::map<pid_t, std::uint64_t> AgentEngine::accounted() const {
  std::map<pid_t, std::uint64_t> times;
  for (const auto& [tid, thread] : threads_)
    times[tid] = thread.cpu_ns;
  return times;
}

void AgentEngine::sample(std::vector<ProfileSample>& samples) {
  // Asked before, so that samples that come meanwhile are not missed.
  const std::uint64_t used = process_cpu_ns(process_.pid()).value_or(0);
  needs_ticks_ = ring_.fills_fast();
  ring_.drain([&](const AgentSample& seen) { take(seen, samples); },
              [&](std::span<const MemoryCopy> code) {
                if (process_.codes() != nullptr)
                  process_.codes()->learn(code);
              });
  sample_the_rest(used, samples);
}

}  // namespace postflight
