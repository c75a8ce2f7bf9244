#include "profile/compile/run_identity.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/descriptor.h"
#include "base/interrupt.h"
#include "profile/compile/options.h"

namespace postflight {
namespace {

constexpr std::size_t kMostAnswer = 4096;

struct Pipe {
  Descriptor from;
  Descriptor to;
};

std::optional<Pipe> make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return std::nullopt;
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// Reads the pipe to its end; nothing if that takes longer.
std::optional<std::string> read_until(int from, int seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline =
      Clock::now() + std::chrono::seconds(seconds);
  std::string text;
  std::array<char, 512> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - Clock::now());
    pollfd watched = {from, POLLIN, 0};
    const int ready = left.count() <= 0
                          ? 0
                          : ::poll(&watched, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      return std::nullopt;
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return text;
    if (text.size() < kMostAnswer)
      text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

// Runs the command and returns the first line of its output.
Result<std::string> ask(std::string_view command, const std::string& url,
                        int seconds) {
  std::optional<Pipe> pipe = make_pipe();
  if (!pipe)
    return fail_errno("cannot make a pipe");
  // The shell splits the command; the URL is passed as it is.
  std::vector<std::string> words = {
      "sh", "-c", std::string(command) + " \"$1\"", "sh", url};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe->to.number(), 1);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  const sigset_t mask = InterruptGuard::child_mask();
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  // A process group of its own, so that its children can be killed with it.
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes,
                                  arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  { const Descriptor closed = std::move(pipe->to); }
  if (error != 0)
    return fail(ErrorKind::kIo, "cannot start it");
  std::optional<std::string> answer = read_until(pipe->from.number(), seconds);
  if (!answer)
    ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!answer)
    return fail(ErrorKind::kIo, "no answer within {} s", seconds);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(ErrorKind::kIo, "it failed");
  answer->resize(std::min(answer->find('\n'), answer->size()));
  if (answer->empty())
    return fail(ErrorKind::kIo, "it printed nothing");
  return *std::move(answer);
}

}  // namespace

std::string run_identifier(std::time_t now, pid_t pid, std::string_view host,
                           std::int32_t rank) {
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> date = {};
  std::strftime(date.data(), date.size(), "%Y-%m-%d-%H:%M:%S", &parts);
  std::string text = fmt::format("{}_{}_{}", date.data(), pid, host);
  if (rank >= 0)
    text += fmt::format("_rank{}", rank);
  return text;
}

std::string file_url(std::string_view path) {
  std::string url = "file://";
  for (const char c : path) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '0' && c <= '9') ||
        std::string_view("/-._~").find(c) != std::string_view::npos;
    if (plain)
      url += c;
    else
      url += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url;
}

std::string answered_url(std::string_view command, const std::string& url,
                         int seconds, Log& log) {
  if (command.empty())
    return url;
  Result<std::string> answer = ask(command, url, seconds);
  if (answer)
    return *std::move(answer);
  log.write(LogLevel::kWarning, kCompileChannel,
            "POSTFLIGHT_URL_COMMAND ({}): {}; the result is at {}", command,
            answer.error().message(), url);
  return url;
}

}  // namespace postflight
