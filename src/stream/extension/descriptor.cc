#include "stream/extension/descriptor.h"

#include <algorithm>
#include <charconv>

namespace postflight {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

bool is_registry_name(std::string_view text) {
  const std::size_t at = text.find('@');
  return is_word(text.substr(0, at)) &&
         (at == text.npos || is_word(text.substr(at + 1)));
}

}  // namespace

Result<ExtensionDescriptor> parse_descriptor(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view name = text.substr(0, slash);
  const std::string_view version =
      slash == text.npos ? std::string_view() : text.substr(slash + 1);
  if (!is_registry_name(name) || (slash != text.npos && !is_word(version)))
    return fail(ErrorKind::kUsage,
                "\"{}\" names no transform; write name/version, such as "
                "stream.zstd/1",
                text);
  return ExtensionDescriptor{std::string(name), std::string(version)};
}

Result<std::uint64_t> major_version(const ExtensionDescriptor& descriptor) {
  const std::string_view version = descriptor.version;
  if (version.empty())
    return fail(ErrorKind::kUsage, "{} lacks a version; write {}/1",
                descriptor.registry_name, descriptor.registry_name);
  std::uint64_t major = 0;
  const char* const end = version.data() + version.size();
  const auto [stopped, failed] = std::from_chars(version.data(), end, major);
  if (failed != std::errc() || (stopped != end && *stopped != '.'))
    return fail(ErrorKind::kUsage, "{}/{}: the version is no number",
                descriptor.registry_name, version);
  return major;
}

}  // namespace postflight
