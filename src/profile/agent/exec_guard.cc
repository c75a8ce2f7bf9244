#include "profile/agent/exec_guard.h"

#include <cerrno>

#include <dlfcn.h>

namespace postflight {
namespace {

using Exec = int (*)(const char*, char* const*);
using ExecWith = int (*)(const char*, char* const*, char* const*);
using ExecFile = int (*)(int, char* const*, char* const*);

// The functions of the C library.
struct {
  Exec execv;
  Exec execvp;
  ExecWith execve;
  ExecWith execvpe;
  ExecFile fexecve;
} real = {};

template <class Function>
void look_up(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

template <class Function, class... Arguments>
int guarded(Function function, Arguments... arguments) {
  const bool paused = pause_sampling();
  const int result = function(arguments...);
  // exec returns only if it has failed.
  const int error = errno;
  if (paused)
    resume_sampling();
  errno = error;
  return result;
}

}  // namespace

void set_up_exec_guard() {
  look_up(real.execv, "execv");
  look_up(real.execvp, "execvp");
  look_up(real.execve, "execve");
  look_up(real.execvpe, "execvpe");
  look_up(real.fexecve, "fexecve");
}

}  // namespace postflight

using postflight::guarded;
using postflight::real;

extern "C" {

[[gnu::visibility("default")]] int execv(const char* path,
                                         char* const* arguments) noexcept {
  return guarded(real.execv, path, arguments);
}

[[gnu::visibility("default")]] int execvp(const char* file,
                                          char* const* arguments) noexcept {
  return guarded(real.execvp, file, arguments);
}

[[gnu::visibility("default")]] int execve(const char* path,
                                          char* const* arguments,
                                          char* const* environment) noexcept {
  return guarded(real.execve, path, arguments, environment);
}

[[gnu::visibility("default")]] int execvpe(const char* file,
                                           char* const* arguments,
                                           char* const* environment) noexcept {
  return guarded(real.execvpe, file, arguments, environment);
}

[[gnu::visibility("default")]] int fexecve(int file, char* const* arguments,
                                           char* const* environment) noexcept {
  return guarded(real.fexecve, file, arguments, environment);
}

}  // extern "C"
