#include "profile/engine/thread_watch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>

namespace postflight {
namespace {

Descriptor open_file(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

std::string read_small(const std::string& path) {
  const Descriptor file = open_file(path);
  std::array<char, 4096> buffer;
  std::string text;
  if (!file.is_open())
    return text;
  for (ssize_t got = 0;
       (got = ::read(file.number(), buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  return text;
}

// The current content of a file of /proc.
std::string_view read_again(const Descriptor& file, std::span<char> buffer) {
  const ssize_t got =
      file.is_open() ? ::pread(file.number(), buffer.data(), buffer.size(), 0)
                     : -1;
  return {buffer.data(), got < 0 ? 0 : static_cast<std::size_t>(got)};
}

// Word `index` of a line, if it is a number.
template <class T>
std::optional<T> number_at(std::string_view text, std::size_t index) {
  for (; index > 0; --index) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos)
      return std::nullopt;
    text.remove_prefix(space + 1);
  }
  T value = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc())
    return std::nullopt;
  return value;
}

// Fields of stat, counted from the state, which is field 3.
constexpr std::size_t kUserField = 14 - 3;
constexpr std::size_t kSystemField = 15 - 3;
constexpr std::size_t kProcessorField = 39 - 3;
constexpr std::size_t kPolicyField = 41 - 3;

std::uint64_t ticks_to_ns(std::uint64_t ticks) {
  static const auto per_second =
      static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return ticks * (1'000'000'000 / per_second);
}

std::string without_newline(std::string text) {
  if (text.ends_with('\n'))
    text.pop_back();
  return text;
}

}  // namespace

ThreadWatch::ThreadWatch(pid_t pid, pid_t tid)
    : folder_(fmt::format("/proc/{}/task/{}/", pid, tid)) {}

ThreadActivity ThreadWatch::activity() const {
  if (!file_.is_open()) {
    char first = 0;
    file_ = open_file(folder_ + "syscall");
    if (!file_.is_open() || ::pread(file_.number(), &first, 1, 0) != 1) {
      is_stat_ = true;
      file_ = open_file(folder_ + "stat");
    }
  }
  std::array<char, 512> buffer;
  const std::string_view text = read_again(file_, buffer);
  if (text.empty())
    return ThreadActivity::kGone;
  if (!is_stat_)
    return text.starts_with("running") ? ThreadActivity::kRunning
                                       : ThreadActivity::kWaiting;
  // "TID (name) S ...", where the name may contain anything.
  const std::size_t end = text.rfind(')');
  if (end == std::string_view::npos || end + 2 >= text.size())
    return ThreadActivity::kGone;
  const char state = text[end + 2];
  if (state == 'Z' || state == 'X')
    return ThreadActivity::kGone;
  return state == 'R' ? ThreadActivity::kRunning : ThreadActivity::kWaiting;
}

std::optional<std::uint64_t> ThreadWatch::turns() const {
  if (!turns_.is_open())
    turns_ = open_file(folder_ + "schedstat");
  // Time on a processor, time waiting for one, and number of turns.
  std::array<char, 128> buffer;
  const std::string_view text = read_again(turns_, buffer);
  return number_at<std::uint64_t>(text, 2);
}

std::optional<std::uint64_t> ThreadWatch::run_ns() const {
  if (!turns_.is_open())
    turns_ = open_file(folder_ + "schedstat");
  std::array<char, 128> buffer;
  return number_at<std::uint64_t>(read_again(turns_, buffer), 0);
}

std::optional<std::string_view> ThreadWatch::stat_fields(
    std::span<char> buffer) const {
  if (!stat_.is_open())
    stat_ = open_file(folder_ + "stat");
  const std::string_view text = read_again(stat_, buffer);
  const std::size_t end = text.rfind(')');
  if (end == std::string_view::npos || end + 2 >= text.size())
    return std::nullopt;
  return text.substr(end + 2);
}

std::optional<std::uint64_t> ThreadWatch::system_ns() const {
  std::array<char, 1024> buffer;
  const auto rest = stat_fields(buffer);
  const auto ticks =
      rest ? number_at<std::uint64_t>(*rest, kSystemField) : std::nullopt;
  return ticks ? std::optional(ticks_to_ns(*ticks)) : std::nullopt;
}

std::optional<int> ThreadWatch::processor() const {
  std::array<char, 1024> buffer;
  const auto rest = stat_fields(buffer);
  if (!rest)
    return std::nullopt;
  const auto policy = number_at<int>(*rest, kPolicyField);
  if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE)
    return std::nullopt;
  return number_at<int>(*rest, kProcessorField);
}

std::optional<std::uint64_t> process_cpu_ns(pid_t pid) {
  // What clock_getcpuclockid() returns, after one more system call.
  const auto clock =
      static_cast<clockid_t>((~static_cast<unsigned>(pid) << 3) | 2U);
  timespec time = {};
  if (::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

std::optional<CpuTime> process_cpu_time(pid_t pid) {
  const std::string text = read_small(fmt::format("/proc/{}/stat", pid));
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos || end + 2 >= text.size())
    return std::nullopt;
  const std::string_view rest = std::string_view(text).substr(end + 2);
  const auto user = number_at<std::uint64_t>(rest, kUserField);
  const auto system = number_at<std::uint64_t>(rest, kSystemField);
  if (!user || !system)
    return std::nullopt;
  return CpuTime{.user_ns = ticks_to_ns(*user),
                 .system_ns = ticks_to_ns(*system)};
}

std::string command_line(pid_t pid) {
  std::string text = read_small(fmt::format("/proc/{}/cmdline", pid));
  while (text.ends_with('\0'))
    text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

std::string thread_name(pid_t pid, pid_t tid) {
  return without_newline(
      read_small(fmt::format("/proc/{}/task/{}/comm", pid, tid)));
}

std::vector<pid_t> process_threads(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  std::filesystem::directory_iterator entry(fmt::format("/proc/{}/task", pid),
                                            error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    pid_t tid = 0;
    std::from_chars(name.data(), name.data() + name.size(), tid);
    if (tid > 0)
      threads.push_back(tid);
  }
  return threads;
}

std::vector<ProcessChild> process_children(pid_t pid) {
  std::vector<ProcessChild> children;
  for (const pid_t tid : process_threads(pid)) {
    const std::string text =
        read_small(fmt::format("/proc/{}/task/{}/children", pid, tid));
    const char* at = text.data();
    const char* const end = at + text.size();
    for (pid_t child = 0; at < end;) {
      const auto [stop, error] = std::from_chars(at, end, child);
      if (error != std::errc())
        break;
      children.push_back({.pid = child, .started_by = tid});
      at = std::find_if_not(stop, end, [](char c) { return c == ' '; });
    }
  }
  return children;
}

}  // namespace postflight
