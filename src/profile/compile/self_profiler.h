#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "base/context.h"
#include "profile/compile/phase_profiler.h"
#include "profile/engine/sampling_loop.h"

namespace postflight {

// Profiles the phases of this process from a separate thread, which reads the
// stacks of the other threads as it would those of another process. It sleeps
// while no phase is being profiled.
class SelfProfiler final : public PhaseProfiler {
 public:
  // Writes to `result`; `phases` is the folder of this process's phase table,
  // by which samples are labelled.
  static Result<std::unique_ptr<PhaseProfiler>> create(
      const PhaseProfilerOptions& options, const std::filesystem::path& result,
      const std::filesystem::path& phases, const Context& context);
  SelfProfiler(const PhaseProfilerOptions& options, ProfileLogWriter log,
               const std::filesystem::path& phases, const Context& context);
  SelfProfiler(const SelfProfiler&) = delete;
  SelfProfiler& operator=(const SelfProfiler&) = delete;
  ~SelfProfiler() override;

  Result<> start(const PhaseRun& run) override;
  Result<PhaseProfile> stop(const PhaseRun& run) override;

 private:
  // Waits for a phase; false at the end.
  bool wait_for_phase();

  ProfileLogWriter log_;
  std::unique_ptr<SamplingLoop> loop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int phases_ = 0;
  bool ended_ = false;
  bool over_ = false;  // the maximum duration has passed
  std::jthread thread_;
};

}  // namespace postflight
