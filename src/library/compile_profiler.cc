#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/environment.h"
#include "library/boundary.h"
#include "library/context.h"
#include "profile/compile/compile_time_profiler.h"

using namespace postflight;

struct postflight_compile_profiler {
  std::shared_ptr<SharedContext> context;
  std::string identifier = {};
  std::unique_ptr<CompileTimeProfiler> profiler = {};
};

namespace postflight {
namespace {

// What the caller's function reports, on its way through the profiler.
struct WorkFailed {};

// Profiles by the caller's functions.
class CallerProfiler final : public PhaseProfiler {
 public:
  explicit CallerProfiler(const postflight_phase_profiler& functions)
      : functions_(functions) {}

  bool concurrent() const override { return functions_.exclusive == 0; }
  Result<> start(const PhaseRun& run) override {
    if (functions_.start(functions_.user, run.phase.c_str(),
                         run.frame_id.c_str()) != 0)
      return fail(ErrorKind::kIo, "the function that starts it has failed");
    return {};
  }
  Result<PhaseProfile> stop(const PhaseRun& run) override {
    PhaseProfile profile;
    if (functions_.stop(functions_.user, run.phase.c_str(),
                        run.frame_id.c_str(), &profile.samples) != 0)
      return fail(ErrorKind::kIo, "the function that stops it has failed");
    return profile;
  }

 private:
  const postflight_phase_profiler functions_;
};

// One session for all phases, which give their names to its samples.
class SessionProfiler final : public PhaseProfiler {
 public:
  static Result<std::unique_ptr<PhaseProfiler>> create(
      const PhaseProfilerOptions& options, const std::string& file) {
    postflight_session_options session{};
    session.size = sizeof(session);
    session.output = file.c_str();
    session.interval =
        std::chrono::duration<double>(options.sample_each).count();
    session.duration =
        static_cast<double>(options.max_profile_duration.count());
    session.most_frames = options.stack_max_len;
    auto made = std::make_unique<SessionProfiler>();
    postflight_error* error = nullptr;
    if (postflight_session_new(&session, &made->session_, &error) ==
        POSTFLIGHT_OK)
      return made;
    const std::string why = postflight_error_message(error);
    postflight_error_free(error);
    return fail(ErrorKind::kIo, "{}", why);
  }
  SessionProfiler() = default;
  SessionProfiler(const SessionProfiler&) = delete;
  SessionProfiler& operator=(const SessionProfiler&) = delete;
  ~SessionProfiler() override { postflight_session_free(session_); }

  Result<> start(const PhaseRun&) override { return {}; }
  // How many samples a phase has is known to those who read the file.
  Result<PhaseProfile> stop(const PhaseRun&) override {
    return PhaseProfile{.samples = 1};
  }

 private:
  postflight_session* session_ = nullptr;
};

std::string file_of(const postflight_compile_options& options,
                    std::int32_t rank) {
  if (options.output != nullptr)
    return std::filesystem::absolute(options.output);
  return std::filesystem::absolute(
      rank < 0 ? "profile.pflog" : fmt::format("profile-rank{}.pflog", rank));
}

Result<> check(const postflight_compile_options& options) {
  if (options.size != sizeof(options))
    return fail(ErrorKind::kUsage,
                "postflight_compile_options has {} bytes instead of {}; begin "
                "with POSTFLIGHT_SIZED",
                options.size, sizeof(options));
  const postflight_phase_profiler* const own = options.profiler;
  if (own == nullptr)
    return {};
  if (own->size != sizeof(*own))
    return fail(ErrorKind::kUsage,
                "postflight_phase_profiler has {} bytes instead of {}; begin "
                "with POSTFLIGHT_SIZED",
                own->size, sizeof(*own));
  if (own->start == nullptr || own->stop == nullptr)
    return fail(ErrorKind::kUsage, "a profiler needs both of its functions");
  return {};
}

}  // namespace
}  // namespace postflight

postflight_status postflight_compile_profiler_new(
    const postflight_compile_options* options,
    postflight_compile_profiler** profiler, postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    TRY(check(*options));
    auto made = from_members<postflight_compile_profiler>(
        shared_context(options->context));
    Log& log = made->context->log;
    CompileProfileOptions with =
        compile_profile_options(process_environment(), log);
    const std::string file = file_of(*options, with.rank);
    made->profiler =
        std::make_unique<CompileTimeProfiler>(std::move(with), log, nullptr);
    made->profiler->enable(
        [&](const PhaseProfilerOptions& wanted)
            -> Result<std::unique_ptr<PhaseProfiler>> {
          if (options->profiler != nullptr)
            return std::make_unique<CallerProfiler>(*options->profiler);
          return SessionProfiler::create(wanted, file);
        },
        options->profiler != nullptr ? "" : file);
    made->identifier = made->profiler->identifier();
    hand_out(std::move(made), profiler);
    return {};
  });
}

void postflight_compile_profiler_free(postflight_compile_profiler* profiler) {
  delete profiler;
}

int postflight_compile_profiler_run(postflight_compile_profiler* profiler,
                                    const char* phase, const char* frame_id,
                                    int (*work)(void* user), void* user) {
  const char* const frame = frame_id == nullptr ? "" : frame_id;
  int result = 0;
  bool ran = false;
  postflight_phase_begin(phase, frame);
  try {
    profiler->profiler->profile_compile_time(phase, frame, [&] {
      ran = true;
      result = work(user);
      if (result != 0)
        throw WorkFailed();
    });
  } catch (const WorkFailed&) {
    // It is counted, and the result says it.
  } catch (const std::exception&) {
    // Out of memory for the profiler; the work is more important.
    if (!ran)
      result = work(user);
  }
  postflight_phase_end();
  return result;
}

int postflight_compile_profiler_is_enabled(
    const postflight_compile_profiler* profiler) {
  return profiler->profiler->enabled() ? 1 : 0;
}

postflight_compile_counters postflight_compile_profiler_counters(
    const postflight_compile_profiler* profiler) {
  const CompileProfileCounters now = profiler->profiler->counters();
  return {.success = now.success,
          .failed = now.failed,
          .ignored_recursive = now.ignored_recursive,
          .ignored_concurrent = now.ignored_concurrent,
          .filtered = now.filtered,
          .empty = now.empty};
}

const char* postflight_compile_profiler_identifier(
    const postflight_compile_profiler* profiler) {
  return profiler->identifier.c_str();
}

const char* postflight_compile_profiler_url(
    const postflight_compile_profiler* profiler) {
  return profiler->profiler->url().c_str();
}
