// Profiling this process, and naming its phases, for C++17 and later.

#ifndef POSTFLIGHT_PROFILE_H
#define POSTFLIGHT_PROFILE_H

#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <postflight/context.h>
#include <postflight/postflight.h>

namespace postflight {

// A phase of the calling thread, until the end of the scope.
class Phase {
 public:
  explicit Phase(const std::string& name, const std::string& frame_id = {}) {
    postflight_phase_begin(name.c_str(), frame_id.c_str());
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;
  ~Phase() { postflight_phase_end(); }
};

// Samples this process from another one until the end of the scope.
class Session {
 public:
  explicit Session(const std::string& output) : Session(named(output)) {}
  explicit Session(const postflight_session_options& options)
      : handle_(detail::make<postflight_session, postflight_session_free>(
            postflight_session_new, &options)) {}

  void finish() { detail::call(postflight_session_finish, handle_.get()); }
  std::string file() const { return postflight_session_file(handle_.get()); }

 private:
  using Handle = detail::Owned<postflight_session, postflight_session_free>;
  explicit Session(Handle handle) : handle_(std::move(handle)) {}

  static Handle named(const std::string& output) {
    postflight_session_options options{};
    options.size = sizeof(options);
    options.output = output.c_str();
    return detail::make<postflight_session, postflight_session_free>(
        postflight_session_new, &options);
  }

  Handle handle_;
};

// Profiles the phases of a compilation, with the contract of torch's
// StrobelightCompileTimeProfiler, see postflight_compile_profiler.
class CompileTimeProfiler {
 public:
  // An empty `output`: profile.pflog, or profile-rank0.pflog in a job. The
  // context's log gets torch's lines.
  explicit CompileTimeProfiler(const std::string& output = {},
                               const Context* context = nullptr)
      : handle_(named(output, context)) {}
  explicit CompileTimeProfiler(const postflight_compile_options& options)
      : handle_(made(options)) {}

  // Runs the work once and returns what it returns, or throws what it throws.
  template <class Work>
  decltype(auto) profile_compile_time(const std::string& phase,
                                      const std::string& frame_id,
                                      Work&& work) {
    using Returned = decltype(std::forward<Work>(work)());
    Call<Returned, Work> call{work};
    postflight_compile_profiler_run(handle_.get(), phase.c_str(),
                                    frame_id.c_str(),
                                    &Call<Returned, Work>::run, &call);
    if (call.thrown)
      std::rethrow_exception(call.thrown);
    if constexpr (!std::is_void_v<Returned>)
      return static_cast<Returned>(*std::move(call.returned));
  }

  bool enabled() const {
    return postflight_compile_profiler_is_enabled(handle_.get()) != 0;
  }
  postflight_compile_counters counters() const {
    return postflight_compile_profiler_counters(handle_.get());
  }
  std::string identifier() const {
    return postflight_compile_profiler_identifier(handle_.get());
  }
  std::string url() const {
    return postflight_compile_profiler_url(handle_.get());
  }

 private:
  using Handle = detail::Owned<postflight_compile_profiler,
                               postflight_compile_profiler_free>;

  // A reference is kept as a pointer; void as nothing.
  template <class Returned>
  struct Kept {
    using Type = std::optional<Returned>;
  };
  template <class Returned, class Work>
  struct Call {
    Work& work;
    std::exception_ptr thrown = {};
    typename Kept<Returned>::Type returned = {};

    static int run(void* user) {
      Call& call = *static_cast<Call*>(user);
      try {
        if constexpr (std::is_void_v<Returned>)
          call.work();
        else if constexpr (std::is_reference_v<Returned>)
          call.returned = &call.work();
        else
          call.returned.emplace(call.work());
        return 0;
      } catch (...) {
        call.thrown = std::current_exception();
        return 1;
      }
    }
  };

  static Handle made(const postflight_compile_options& options) {
    return detail::make<postflight_compile_profiler,
                        postflight_compile_profiler_free>(
        postflight_compile_profiler_new, &options);
  }
  static Handle named(const std::string& output, const Context* context) {
    postflight_compile_options options{};
    options.size = sizeof(options);
    options.output = detail::text_or_null(output);
    options.context = context == nullptr ? nullptr : context->handle();
    return made(options);
  }

  Handle handle_;
};
template <>
struct CompileTimeProfiler::Kept<void> {
  struct Type {};
};
template <class Referred>
struct CompileTimeProfiler::Kept<Referred&> {
  using Type = Referred*;
};

}  // namespace postflight

#endif
