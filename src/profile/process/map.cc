#include "profile/process/map.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/file.h"

namespace postflight {
namespace {

std::optional<std::uint64_t> take_hex(std::string_view& text, char until) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc() || stop == end || *stop != until)
    return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()) + 1);
  return value;
}

std::optional<Mapping> parse_mapping(std::string_view line) {
  Mapping mapping;
  const auto start = take_hex(line, '-');
  if (!start)
    return std::nullopt;
  const auto end = take_hex(line, ' ');
  if (!end || *end <= *start || line.size() < 5)
    return std::nullopt;
  mapping.executable = line[2] == 'x';
  line.remove_prefix(5);
  const auto offset = take_hex(line, ' ');
  if (!offset)
    return std::nullopt;
  // Skips device and inode. A path starts with a slash; names like [stack] are
  // not files.
  if (const std::size_t path = line.find('/'); path != std::string_view::npos)
    mapping.path = line.substr(path);
  mapping.start = *start;
  mapping.end = *end;
  mapping.offset = *offset;
  return mapping;
}

}  // namespace

std::vector<Mapping> parse_mappings(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (std::optional<Mapping> mapping = parse_mapping(text.substr(0, end)))
      mappings.push_back(*std::move(mapping));
    if (end == std::string_view::npos)
      break;
    text.remove_prefix(end + 1);
  }
  return mappings;
}

Result<std::vector<Mapping>> process_mappings(pid_t pid) {
  const MappedFile text =
      TRY(MappedFile::open(fmt::format("/proc/{}/maps", pid)));
  return parse_mappings(as_text(text.bytes()));
}

std::string path_inside(pid_t pid, const Mapping& mapping) {
  return fmt::format("/proc/{}/root{}", pid, mapping.path);
}

}  // namespace postflight
