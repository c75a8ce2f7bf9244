#include "base/glob.h"

#include <cstddef>
#include <filesystem>
#include <system_error>

#include <glob.h>

#include "base/file.h"

namespace postflight {
namespace {

// The front of a pattern that stands for one byte: "[...]", "\x" or "x".
struct Unit {
  std::size_t size = 1;
  bool matches = false;
};

Unit match_set(std::string_view pattern, char byte) {
  std::size_t at = 1;
  const bool inverted = at < pattern.size() && pattern[at] == '!';
  at += inverted ? 1 : 0;
  bool found = false;
  // A closing bracket in first position is a member of the set.
  for (const std::size_t first = at;
       at < pattern.size() && (pattern[at] != ']' || at == first); ++at) {
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' &&
        pattern[at + 2] != ']') {
      found = found || (pattern[at] <= byte && byte <= pattern[at + 2]);
      at += 2;
    } else {
      found = found || pattern[at] == byte;
    }
  }
  if (at >= pattern.size())
    return {1, byte == '['};
  return {at + 1, found != inverted};
}

Unit match_unit(std::string_view pattern, char byte) {
  if (pattern[0] == '[')
    return match_set(pattern, byte);
  if (pattern[0] == '\\' && pattern.size() > 1)
    return {2, pattern[1] == byte};
  return {1, pattern[0] == '?' || pattern[0] == byte};
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) {
  // Only the last star needs backtracking: anything more that an earlier one
  // could match, this one can match too.
  std::string_view after_star;
  std::string_view retry;
  bool has_star = false;
  while (true) {
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      after_star = pattern;
      retry = text;
      has_star = true;
      continue;
    }
    if (text.empty())
      return pattern.empty();
    const Unit unit = pattern.empty() ? Unit{} : match_unit(pattern, text[0]);
    if (unit.matches) {
      pattern.remove_prefix(unit.size);
      text.remove_prefix(1);
      continue;
    }
    if (!has_star)
      return false;
    retry.remove_prefix(1);
    text = retry;
    pattern = after_star;
  }
}

Result<std::vector<std::string>> expand_path(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::status(path, error)))
    return std::vector<std::string>{path};
  if (path.find_first_of("*?[") == path.npos)
    return fail(ErrorKind::kIo, "{}: {}", path,
                permission_advice(path).value_or(
                    error ? error.message() : "no such file or folder"));
  glob_t matches = {};
  const int code = ::glob(path.c_str(), GLOB_TILDE, nullptr, &matches);
  std::vector<std::string> paths(matches.gl_pathv,
                                 matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  if (code != 0 || paths.empty())
    return fail(ErrorKind::kIo, "{}: no file matches", path);
  return paths;
}

}  // namespace postflight
