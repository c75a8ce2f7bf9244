#include "profile/engine/launch.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/interrupt.h"

namespace postflight {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// This process's environment, except for what `added` sets.
std::vector<std::string> joined_environment(
    const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& other : added)
      replaced = replaced || other.starts_with(name);
    if (!replaced)
      all.emplace_back(text);
  }
  return all;
}

tl::unexpected<Error> cannot_start(const std::string& program, int error) {
  return fail(ErrorKind::kUsage, "cannot start {}: {}", program,
              std::generic_category().message(error));
}

// SIGXFSZ is only ignored by a guard of ours.
std::atomic<bool> resets_file_size_signal = false;

// The errno of running it, or 0.
int error_of(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    return EACCES;
  return ::access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

Result<> Launch::check(const std::string& program) {
  int why = ENOENT;
  if (program.find('/') != std::string::npos) {
    why = error_of(program);
  } else {
    const char* const given = std::getenv("PATH");
    std::string_view folders = given == nullptr ? "/bin:/usr/bin" : given;
    for (bool more = true; more && why != 0;) {
      const std::size_t colon = folders.find(':');
      const int error =
          error_of(std::filesystem::path(folders.substr(0, colon)) / program);
      // A file without permission says more than one that does not exist.
      if (error == 0 || error == EACCES)
        why = error;
      more = colon != std::string_view::npos;
      folders.remove_prefix(more ? colon + 1 : 0);
    }
  }
  if (why != 0)
    return cannot_start(program, why);
  return {};
}

Result<Launch> Launch::start(const std::vector<std::string>& command,
                             const std::vector<std::string>& environment) {
  std::vector<std::string> words = command;
  std::vector<std::string> variables = joined_environment(environment);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  const sigset_t mask = InterruptGuard::child_mask();
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  short flags = POSIX_SPAWN_SETSIGMASK;
  sigset_t reset;
  ::sigemptyset(&reset);
  if (resets_file_size_signal) {
    ::sigaddset(&reset, SIGXFSZ);
    flags |= POSIX_SPAWN_SETSIGDEF;
  }
  ::posix_spawnattr_setsigdefault(&attributes, &reset);
  ::posix_spawnattr_setflags(&attributes, flags);
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, words[0].c_str(), nullptr, &attributes,
                     pointers(words).data(), pointers(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return cannot_start(words[0], error);
  return Launch(pid);
}

Launch::Launch(Launch&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

Launch::~Launch() {
  if (pid_ > 0)
    wait();
}

// Looks for its end only: it may stop while its stack is read, which whoever
// reads it waits for.
void Launch::look(int options) {
  siginfo_t info = {};
  const auto id = static_cast<id_t>(pid_);
  if (::waitid(P_PID, id, &info, WEXITED | WNOWAIT | options) != 0) {
    if (errno != EINTR)
      status_ = 0;
    return;
  }
  if (info.si_pid != pid_)
    return;
  if (info.si_code == CLD_TRAPPED) {
    constexpr timespec kPause = {0, 1'000'000};
    if (options == 0)
      ::nanosleep(&kPause, nullptr);
    return;
  }
  ::waitid(P_PID, id, &info, WEXITED);
  status_ = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
                                       : W_EXITCODE(0, info.si_status);
  if (info.si_code == CLD_DUMPED)
    *status_ |= WCOREFLAG;
}

std::optional<int> Launch::poll() {
  if (!status_)
    look(WNOHANG);
  return status_;
}

int Launch::wait() {
  while (!status_)
    look(0);
  return *status_;
}

namespace {

constexpr std::array kForwarded = {SIGUSR1, SIGUSR2};
std::atomic<pid_t> forward_to = 0;

void forward(int signal, siginfo_t* info, void*) {
  const int error = errno;
  if (const pid_t pid = forward_to.load(); pid > 0 && info->si_code <= 0)
    ::kill(pid, signal);
  errno = error;
}

}  // namespace

SignalForwarding::SignalForwarding(pid_t to) {
  forward_to = to;
  struct sigaction action = {};
  action.sa_sigaction = forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (std::size_t i = 0; i < kForwarded.size(); ++i)
    ::sigaction(kForwarded[i], &action, &before_[i]);
}

SignalForwarding::~SignalForwarding() {
  for (std::size_t i = 0; i < kForwarded.size(); ++i)
    ::sigaction(kForwarded[i], &before_[i], nullptr);
  forward_to = 0;
}

FileSizeGuard::FileSizeGuard() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &ignore, &before_);
  resets_file_size_signal = before_.sa_handler != SIG_IGN;
}

FileSizeGuard::~FileSizeGuard() {
  ::sigaction(SIGXFSZ, &before_, nullptr);
  resets_file_size_signal = false;
}

std::string describe_failure(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    return fmt::format("exit status {}", WEXITSTATUS(status));
  return {};
}

}  // namespace postflight
