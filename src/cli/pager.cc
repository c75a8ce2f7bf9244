#include "cli/pager.h"

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/interrupt.h"

namespace postflight {
namespace {

// The environment of this process. Unless $LESS is set, less keeps colours (R),
// quits if one screen is enough (F) and leaves the text there (X).
std::vector<std::string> pager_environment(const Environment& environment) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  if (!environment("LESS"))
    variables.emplace_back("LESS=FRX");
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> found;
  found.reserve(texts.size() + 1);
  for (std::string& text : texts)
    found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

// Starts `command` in a shell, reading from `input`.
int spawn(const std::string& command, const Environment& environment, int input,
          pid_t& process) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  const sigset_t mask = InterruptGuard::child_mask();
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> arguments = {"sh", "-c", command};
  std::vector<std::string> variables = pager_environment(environment);
  const int code =
      posix_spawn(&process, "/bin/sh", &actions, &attributes,
                  pointers(arguments).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

bool has_less(const Environment& environment, int input) {
  pid_t process = 0;
  int status = 0;
  return spawn("command -v less >/dev/null", environment, input, process) ==
             0 &&
         ::waitpid(process, &status, 0) == process && status == 0;
}

}  // namespace

Pager::Pager(Descriptor input, pid_t process)
    : input_(std::move(input)),
      process_(process),
      previous_(std::signal(SIGINT, SIG_IGN)) {}

std::unique_ptr<Pager> Pager::start(const Environment& environment) {
  const std::optional<std::string> wanted = environment("PAGER");
  if (wanted && (wanted->empty() || *wanted == "cat"))
    return nullptr;
  // A socket rather than a pipe: MSG_NOSIGNAL suppresses SIGPIPE when the
  // reader has exited.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return nullptr;
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  if (!wanted && !has_less(environment, theirs.number()))
    return nullptr;
  pid_t process = 0;
  if (spawn(wanted.value_or("less"), environment, theirs.number(), process) !=
      0)
    return nullptr;
  return std::unique_ptr<Pager>(new Pager(std::move(ours), process));
}

bool Pager::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count =
        ::send(input_.number(), text.data(), text.size(), MSG_NOSIGNAL);
    if (count >= 0)
      text.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      return false;
  }
  return true;
}

Pager::~Pager() {
  input_ = Descriptor();
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  std::signal(SIGINT, previous_);
}

}  // namespace postflight
