#include "profile/compile/self_profiler.h"

#include <utility>
#include <vector>

#include <unistd.h>

#include "profile/process/memory.h"

namespace postflight {
namespace {

// The number of samples when each phase of this thread began.
std::vector<std::uint64_t>& samples_at_start() {
  thread_local std::vector<std::uint64_t> samples;
  return samples;
}

}  // namespace

SelfProfiler::SelfProfiler(const PhaseProfilerOptions& options,
                           ProfileLogWriter log,
                           const std::filesystem::path& phases,
                           const Context& context)
    : log_(std::move(log)) {
  const SamplingOptions sampling = {.interval = options.sample_each,
                                    .duration = options.max_profile_duration,
                                    .most_frames = options.stack_max_len,
                                    .folder = phases};
  loop_ = std::make_unique<SamplingLoop>(sampling, context, log_);
  loop_->add(::getpid());
  thread_ = std::jthread([this] {
    // Samples that cannot be written are missing in the file; stop() reports
    // how many there are.
    static_cast<void>(loop_->run([this] { return wait_for_phase(); }));
    const std::lock_guard lock(mutex_);
    over_ = true;
  });
}

Result<std::unique_ptr<PhaseProfiler>> SelfProfiler::create(
    const PhaseProfilerOptions& options, const std::filesystem::path& result,
    const std::filesystem::path& phases, const Context& context) {
  TRY(check_permission(::getpid()));
  ProfileLogWriter log = TRY(ProfileLogWriter::create(result, false));
  log.note("mode", "cpu");
  log.note("engine", "own process, from a thread of its own");
  log.note("run_user_name", options.run_user_name);
  for (const std::string& tag : options.sample_tags)
    log.note("tag:" + tag, tag);
  return std::make_unique<SelfProfiler>(options, std::move(log), phases,
                                        context);
}

SelfProfiler::~SelfProfiler() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

bool SelfProfiler::wait_for_phase() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phases_ > 0 || ended_; });
  return !ended_;
}

Result<> SelfProfiler::start(const PhaseRun&) {
  samples_at_start().push_back(loop_->samples());
  {
    const std::lock_guard lock(mutex_);
    ++phases_;
  }
  changed_.notify_all();
  return {};
}

Result<PhaseProfile> SelfProfiler::stop(const PhaseRun&) {
  const std::uint64_t before = samples_at_start().back();
  samples_at_start().pop_back();
  const std::lock_guard lock(mutex_);
  --phases_;
  return PhaseProfile{.samples = loop_->samples() - before, .truncated = over_};
}

}  // namespace postflight
