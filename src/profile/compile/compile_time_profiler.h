#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "profile/compile/options.h"
#include "profile/compile/phase_profiler.h"
#include "profile/phase/filter.h"
#include "profile/phase/table.h"

namespace postflight {

struct CompileProfileCounters {
  std::uint64_t success = 0;
  std::uint64_t failed = 0;  // the profiler failed, or the work threw
  std::uint64_t ignored_recursive = 0;
  std::uint64_t ignored_concurrent = 0;
  std::uint64_t filtered = 0;
  std::uint64_t empty = 0;      // succeeded, but without samples
  std::uint64_t truncated = 0;  // by the maximum duration; may be successes

  bool operator==(const CompileProfileCounters&) const = default;
};

// Profiles the phases of a compilation, with the contract of torch's
// StrobelightCompileTimeProfiler: each outermost phase of a thread is profiled
// separately. Whatever happens to the profiler, the work runs exactly once, its
// value is returned and its exception propagates.
class CompileTimeProfiler {
 public:
  using Factory = std::function<Result<std::unique_ptr<PhaseProfiler>>(
      const PhaseProfilerOptions&)>;

  // `log` and `phases`, which may be null, must outlive it.
  CompileTimeProfiler(CompileProfileOptions options, Log& log,
                      PhaseTable* phases);

  // Has an effect only once; later calls are logged. If the profiler cannot be
  // created, nothing is profiled. `result` is the absolute path of the file
  // with the samples; its URL is logged.
  void enable(const Factory& factory, std::string_view result);
  bool enabled() const { return enabled_; }
  // Of this process; a forked child has its own.
  std::string identifier() const;
  CompileProfileCounters counters() const;
  // The URL of the result; empty while not enabled.
  const std::string& url() const { return url_; }

  template <class Work>
  decltype(auto) profile_compile_time(std::string_view phase,
                                      std::string_view frame_id, Work&& work) {
    const Scope scope(*this, phase, frame_id);
    return std::forward<Work>(work)();
  }

 private:
  // One call; ends the phase even if the work throws.
  class Scope {
   public:
    Scope(CompileTimeProfiler& profiler, std::string_view phase,
          std::string_view frame_id);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    CompileTimeProfiler& profiler_;
    std::optional<Phase> shown_;
    PhaseRun run_;
    int exceptions_;
    bool counted_ = false;
    bool started_ = false;
  };

  bool start(const PhaseRun& run);
  std::optional<PhaseProfile> stop(const PhaseRun& run);
  void count(const std::optional<PhaseProfile>& profile, bool threw);
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args);

  const CompileProfileOptions options_;
  Log& log_;
  PhaseTable* const phases_;
  const PhaseFilter filter_;
  std::unique_ptr<PhaseProfiler> profiler_;
  std::atomic<bool> enabled_ = false;
  std::atomic<int> running_ = 0;
  std::int64_t enabled_at_ = 0;
  std::string url_;
  mutable std::mutex counters_mutex_;
  CompileProfileCounters counters_;
};

}  // namespace postflight
