#include "profile/agent/exec_guard.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace postflight {
namespace {

using Exec = int (*)(const char*, char* const*, char* const*);
using ExecFile = int (*)(int, char* const*, char* const*);
using Spawn = int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                      const posix_spawnattr_t*, char* const*, char* const*);

// The functions of the C library.
struct {
  Exec execve;
  Exec execvpe;
  ExecFile fexecve;
  Spawn posix_spawn;
  Spawn posix_spawnp;
  int (*system)(const char*);
  FILE* (*popen)(const char*, const char*);
} originals = {};
const char* library = nullptr;

template <class Function>
void look_up(Function& function, const char* name) {
  if (function == nullptr)
    function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// Whether the loader can map the agent.
bool can_load() {
  // As exec takes capabilities away from users other than root, access() does.
  if (::access(library, R_OK) != 0)
    return false;
  const int file = ::open(library, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  void* const page =
      ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  if (page != MAP_FAILED)
    ::munmap(page, 4096);
  ::close(file);
  return page != MAP_FAILED;
}

// Whether it is a program, or a script of one, of another kind than ours.
bool is_foreign(const char* path) {
  for (int scripts = 0; scripts < 4; ++scripts) {
    unsigned char front[256] = {};
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
      return false;
    const ssize_t got = ::pread(file, front, sizeof(front) - 1, 0);
    ::close(file);
    if (got > EI_CLASS && std::memcmp(front, ELFMAG, SELFMAG) == 0)
      return front[EI_CLASS] != ELFCLASS64;
    if (got < 2 || front[0] != '#' || front[1] != '!')
      return false;
    char* at = reinterpret_cast<char*>(front) + 2;
    at += std::strspn(at, " \t");
    at[std::strcspn(at, " \t\n")] = 0;
    char* const end = static_cast<char*>(__builtin_alloca(std::strlen(at) + 1));
    std::memcpy(end, at, std::strlen(at) + 1);
    path = end;
  }
  return false;
}

constexpr char kPreload[] = "LD_PRELOAD=";
constexpr std::size_t kPreloadSize = sizeof(kPreload) - 1;

// Index of LD_PRELOAD if it has the agent, else -1.
int preload_index(char* const* environment) {
  if (library == nullptr || environment == nullptr)
    return -1;
  for (int i = 0; environment[i] != nullptr; ++i)
    if (std::strncmp(environment[i], kPreload, kPreloadSize) == 0)
      return std::strstr(environment[i], library) != nullptr ? i : -1;
  return -1;
}

// Copies LD_PRELOAD without the agent.
void copy_without_agent(const char* from, char* to) {
  const char* const at = std::strstr(from, library);
  const std::size_t before = static_cast<std::size_t>(at - from);
  std::memcpy(to, from, before);
  const char* after = at + std::strlen(library);
  after += std::strspn(after, ": ");
  std::memcpy(to + before, after, std::strlen(after) + 1);
}

std::size_t entries(char* const* environment) {
  std::size_t count = 1;
  while (environment[count - 1] != nullptr)
    ++count;
  return count;
}

template <class Function>
int guarded(Function function) {
  const bool paused = pause_sampling();
  const int result = function();
  // exec returns only if it has failed.
  const int error = errno;
  if (paused)
    resume_sampling();
  errno = error;
  return result;
}

// `path` is null if it is not known.
template <class Call>
int with_fitting_environment(const char* path, char* const* environment,
                             Call call) {
  const int index = preload_index(environment);
  if (index < 0)
    return call(environment);
  const int error = errno;
  const bool fits = can_load() && (path == nullptr || !is_foreign(path));
  errno = error;
  if (fits)
    return call(environment);
  // On the stack, as the caller may be the child of a vfork().
  const std::size_t count = entries(environment);
  auto** const room =
      static_cast<char**>(__builtin_alloca(sizeof(char*) * count));
  std::memcpy(room, environment, sizeof(char*) * count);
  room[index] =
      static_cast<char*>(__builtin_alloca(std::strlen(environment[index]) + 1));
  copy_without_agent(environment[index], room[index]);
  return call(room);
}

// For functions that take the environment from the C library.
void drop_lost_agent() {
  const int index = preload_index(environ);
  if (index >= 0 && !can_load())
    copy_without_agent(environ[index], environ[index]);
}

// A path only where the program is not searched for.
const char* path_of(const char* file) {
  return std::strchr(file, '/') != nullptr ? file : nullptr;
}

}  // namespace

void set_up_exec_guard(const char* own_library) {
  library = own_library;
  look_up(originals.execve, "execve");
  look_up(originals.execvpe, "execvpe");
  look_up(originals.fexecve, "fexecve");
  look_up(originals.posix_spawn, "posix_spawn");
  look_up(originals.posix_spawnp, "posix_spawnp");
  look_up(originals.system, "system");
  look_up(originals.popen, "popen");
}

}  // namespace postflight

using namespace postflight;

extern "C" {

[[gnu::visibility("default")]] int execve(const char* path,
                                          char* const* arguments,
                                          char* const* environment) noexcept {
  look_up(originals.execve, "execve");
  return with_fitting_environment(path, environment, [=](char* const* fitting) {
    return guarded([=] { return originals.execve(path, arguments, fitting); });
  });
}

[[gnu::visibility("default")]] int execv(const char* path,
                                         char* const* arguments) noexcept {
  return ::execve(path, arguments, environ);
}

[[gnu::visibility("default")]] int execvpe(const char* file,
                                           char* const* arguments,
                                           char* const* environment) noexcept {
  look_up(originals.execvpe, "execvpe");
  return with_fitting_environment(
      path_of(file), environment, [=](char* const* fitting) {
        return guarded(
            [=] { return originals.execvpe(file, arguments, fitting); });
      });
}

[[gnu::visibility("default")]] int execvp(const char* file,
                                          char* const* arguments) noexcept {
  return ::execvpe(file, arguments, environ);
}

[[gnu::visibility("default")]] int fexecve(int file, char* const* arguments,
                                           char* const* environment) noexcept {
  look_up(originals.fexecve, "fexecve");
  return with_fitting_environment(
      nullptr, environment, [=](char* const* fitting) {
        return guarded(
            [=] { return originals.fexecve(file, arguments, fitting); });
      });
}

[[gnu::visibility("default")]] int posix_spawn(
    pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
    const posix_spawnattr_t* attributes, char* const* arguments,
    char* const* environment) {
  look_up(originals.posix_spawn, "posix_spawn");
  return with_fitting_environment(path, environment, [=](char* const* fitting) {
    return originals.posix_spawn(pid, path, actions, attributes, arguments,
                                 fitting);
  });
}

[[gnu::visibility("default")]] int posix_spawnp(
    pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
    const posix_spawnattr_t* attributes, char* const* arguments,
    char* const* environment) {
  look_up(originals.posix_spawnp, "posix_spawnp");
  return with_fitting_environment(
      path_of(file), environment, [=](char* const* fitting) {
        return originals.posix_spawnp(pid, file, actions, attributes, arguments,
                                      fitting);
      });
}

[[gnu::visibility("default")]] int system(const char* command) {
  look_up(originals.system, "system");
  drop_lost_agent();
  return originals.system(command);
}

[[gnu::visibility("default")]] FILE* popen(const char* command,
                                           const char* mode) {
  look_up(originals.popen, "popen");
  drop_lost_agent();
  return originals.popen(command, mode);
}

// Does not run destructors; os._exit() and multiprocessing end so.
[[gnu::noreturn, gnu::visibility("default")]] void _exit(int status) {
  end_process();
  while (true)
    ::syscall(SYS_exit_group, status);
}

[[gnu::noreturn, gnu::visibility("default")]] void _Exit(int status) noexcept {
  ::_exit(status);
}

}  // extern "C"
