#include "profile/process/pid_namespace.h"

#include <charconv>
#include <string_view>
#include <system_error>

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/file.h"

namespace postflight {

std::uint64_t pid_namespace(pid_t pid) {
  struct stat status;
  return ::stat(fmt::format("/proc/{}/ns/pid", pid).c_str(), &status) == 0
             ? status.st_ino
             : 0;
}

std::optional<pid_t> innermost_pid(pid_t pid, pid_t tid) {
  const auto file =
      MappedFile::open(fmt::format("/proc/{}/task/{}/status", pid, tid));
  if (!file)
    return std::nullopt;
  // "NSpid:\t4711\t1": one for each namespace, the innermost last.
  constexpr std::string_view kKey = "\nNSpid:";
  std::string_view text = as_text(file->bytes());
  const std::size_t at = text.find(kKey);
  if (at == std::string_view::npos)
    return std::nullopt;
  text = text.substr(at + kKey.size());
  text = text.substr(0, text.find('\n'));
  text = text.substr(text.find_last_of("\t ") + 1);
  pid_t inside = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), inside);
  if (error != std::errc())
    return std::nullopt;
  return inside;
}

}  // namespace postflight
