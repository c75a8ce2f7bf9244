// Profiling this process, and naming its phases, for C++17 and later.

#ifndef POSTFLIGHT_PROFILE_H
#define POSTFLIGHT_PROFILE_H

#include <string>
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

}  // namespace postflight

#endif
