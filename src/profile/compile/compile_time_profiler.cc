#include "profile/compile/compile_time_profiler.h"

#include <algorithm>
#include <ctime>
#include <exception>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "profile/compile/run_identity.h"
#include "profile/engine/sampling_interval.h"
#include "profile/process/identity.h"

namespace postflight {
namespace {

constexpr double kDefaultCycles = 1e7;
constexpr int kUrlSeconds = 10;

// A phase that is being profiled on this thread, and its profiler.
struct Inside {
  const void* profiler;
  const PhaseRun* run;
};

std::vector<Inside>& inside_of_this_thread() {
  thread_local std::vector<Inside> inside;
  return inside;
}

// The result of the call, with any exception as an error.
template <class Call>
auto attempted(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& exception) {
    return fail(ErrorKind::kIo, "{}", exception.what());
  } catch (...) {
    return fail(ErrorKind::kIo, "it threw an unknown exception");
  }
}

std::optional<Pattern> compiled(const std::optional<std::string>& expression) {
  if (!expression)
    return std::nullopt;
  Result<Pattern> pattern = Pattern::compile(*expression);
  if (!pattern)
    return std::nullopt;
  return *std::move(pattern);
}

}  // namespace

template <class... Args>
void CompileTimeProfiler::info(fmt::format_string<Args...> format,
                               Args&&... args) {
  log_.write(LogLevel::kInfo, kCompileChannel, format,
             std::forward<Args>(args)...);
}

CompileTimeProfiler::CompileTimeProfiler(CompileProfileOptions options,
                                         Log& log, PhaseTable* phases)
    : options_(std::move(options)),
      log_(log),
      phases_(phases),
      filter_{.frame = compiled(options_.frame_filter),
              .whole_frame = options_.frame_filter_full,
              .frame_exclude = compiled(options_.frame_exclude)} {}

std::string CompileTimeProfiler::identifier() const {
  return run_identifier(enabled_at_, ::getpid(), host_name(), options_.rank);
}

void CompileTimeProfiler::enable(const Factory& factory,
                                 std::string_view result) {
  if (enabled_) {
    info("compile time strobelight profiling already enabled");
    return;
  }
  enabled_at_ = std::time(nullptr);
  PhaseProfilerOptions options = {
      .sample_each =
          options_.sample_each.value_or(interval_of_cycles(kDefaultCycles)),
      .max_profile_duration = options_.max_profile_time,
      .stack_max_len = options_.max_stack_length,
      .run_user_name = "pt2-profiler/" + options_.user,
      .sample_tags = options_.tags};
  options.sample_tags.insert(identifier());
  Result<std::unique_ptr<PhaseProfiler>> made =
      attempted([&] { return factory(options); });
  if (!made || *made == nullptr) {
    log_.write(LogLevel::kError, kCompileChannel,
               "compile time strobelight profiling not enabled: {}",
               made ? "there is no profiler" : made.error().message());
    return;
  }
  profiler_ = *std::move(made);
  info("compile time strobelight profiling enabled");
  info("Unique sample tag for this run is: {}", identifier());
  if (!options_.tags.empty())
    info("Further tags: {}", fmt::join(options_.tags, ","));
  url_ =
      answered_url(options_.url_command, file_url(result), kUrlSeconds, log_);
  info("URL to access the strobelight profile at the end of the run: {}", url_);
  enabled_ = true;
}

CompileProfileCounters CompileTimeProfiler::counters() const {
  const std::lock_guard lock(counters_mutex_);
  return counters_;
}

bool CompileTimeProfiler::start(const PhaseRun& run) {
  const Result<> started = attempted([&] { return profiler_->start(run); });
  if (!started)
    log_.write(LogLevel::kWarning, kCompileChannel,
               "cannot profile phase {}: {}", run.phase,
               started.error().message());
  return started.has_value();
}

std::optional<PhaseProfile> CompileTimeProfiler::stop(const PhaseRun& run) {
  const Result<PhaseProfile> profile =
      attempted([&] { return profiler_->stop(run); });
  if (profile)
    return *profile;
  log_.write(LogLevel::kWarning, kCompileChannel, "no profile of phase {}: {}",
             run.phase, profile.error().message());
  return std::nullopt;
}

void CompileTimeProfiler::count(const std::optional<PhaseProfile>& profile,
                                bool threw) {
  CompileProfileCounters now;
  {
    const std::lock_guard lock(counters_mutex_);
    if (!profile || threw)
      ++counters_.failed;
    else if (profile->samples == 0)
      ++counters_.empty;
    else
      ++counters_.success;
    if (profile && profile->truncated)
      ++counters_.truncated;
    now = counters_;
  }
  info(
      "{} strobelight success runs out of {} non-recursive compilation events.",
      now.success, now.success + now.failed + now.empty);
  info(
      "{} recursive and {} concurrent ones ignored, {} filtered, {} without "
      "samples, {} longer than allowed.",
      now.ignored_recursive, now.ignored_concurrent, now.filtered, now.empty,
      now.truncated);
}

CompileTimeProfiler::Scope::Scope(CompileTimeProfiler& profiler,
                                  std::string_view phase,
                                  std::string_view frame_id)
    : profiler_(profiler),
      run_{std::string(phase), std::string(frame_id)},
      exceptions_(std::uncaught_exceptions()) {
  if (!profiler.enabled_)
    return;
  // Nested phases are not profiled separately, but samples are labelled with
  // them.
  shown_.emplace(profiler.phases_, phase, frame_id);
  std::vector<Inside>& inside = inside_of_this_thread();
  const auto outer = std::ranges::find(
      inside, static_cast<const void*>(&profiler), &Inside::profiler);
  if (outer != inside.end()) {
    const std::lock_guard lock(profiler.counters_mutex_);
    ++profiler.counters_.ignored_recursive;
    profiler.info(
        "profile_compile_time is requested for phase: {}, frame {}, while "
        "already in running phase: {}, frame {}, recursive call ignored",
        phase, frame_id, outer->run->phase, outer->run->frame_id);
    return;
  }
  if (!profiler.filter_.keeps(phase, frame_id)) {
    const std::lock_guard lock(profiler.counters_mutex_);
    ++profiler.counters_.filtered;
    profiler.info("profiling frame {} is skipped due to frame_id_filter {}",
                  frame_id, profiler.options_.frame_filter.value_or("none"));
    return;
  }
  if (profiler.running_.fetch_add(1) > 0 && !profiler.profiler_->concurrent()) {
    profiler.running_.fetch_sub(1);
    const std::lock_guard lock(profiler.counters_mutex_);
    ++profiler.counters_.ignored_concurrent;
    profiler.info(
        "profiling frame {} is ignored, another thread is being profiled",
        frame_id);
    return;
  }
  counted_ = true;
  inside.push_back({&profiler, &run_});
  profiler.info("profiling frame {}", frame_id);
  started_ = profiler.start(run_);
}

CompileTimeProfiler::Scope::~Scope() {
  if (!counted_)
    return;
  const bool threw = std::uncaught_exceptions() > exceptions_;
  const std::optional<PhaseProfile> profile =
      started_ ? profiler_.stop(run_) : std::nullopt;
  inside_of_this_thread().pop_back();
  profiler_.running_.fetch_sub(1);
  profiler_.count(profile, threw);
}

}  // namespace postflight
