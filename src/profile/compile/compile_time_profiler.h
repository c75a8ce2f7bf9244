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
  std::uint64_t failed = 0;  // the profiler did, or the work threw
  std::uint64_t ignored_recursive = 0;
  std::uint64_t ignored_concurrent = 0;
  std::uint64_t filtered = 0;
  std::uint64_t empty = 0;      // went well, but no sample was taken
  std::uint64_t truncated = 0;  // by the longest duration; successes, too

  bool operator==(const CompileProfileCounters&) const = default;
};

// Profiles the phases of a compilation as torch's own class of nearly that name
// promises to: each phase that is not inside another of its thread is profiled
// on its own. Whatever happens to the profiler, the work runs exactly once, its
// value is returned and its exception passed on.
class CompileTimeProfiler {
 public:
  using Factory = std::function<Result<std::unique_ptr<PhaseProfiler>>(
      const PhaseProfilerOptions&)>;

  // `log` has to outlive it, and so does `phases`, which may be null.
  CompileTimeProfiler(CompileProfileOptions options, Log& log,
                      PhaseTable* phases);

  // Only once: a second time says so and changes nothing. If there can be no
  // profiler, it stays off and everything runs unprofiled. `result` is the
  // file with the samples, absolute; its address is logged.
  void enable(const Factory& factory, std::string_view result);
  bool enabled() const { return enabled_; }
  // Of this process: a forked child has its own.
  std::string identifier() const;
  CompileProfileCounters counters() const;
  // What the address of the result is; empty while it is off.
  const std::string& url() const { return url_; }

  template <class Work>
  decltype(auto) profile_compile_time(std::string_view phase,
                                      std::string_view frame_id, Work&& work) {
    const Scope scope(*this, phase, frame_id);
    return std::forward<Work>(work)();
  }

 private:
  // One call; ends the phase however the work does.
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
