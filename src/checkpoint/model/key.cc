#include "checkpoint/model/key.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace postflight {
namespace {

enum Care : std::uint8_t { kPlain, kQuoted, kEscaped };

// A table, as each of many thousand keys is scanned twice.
constexpr std::array<Care, 256> kCare = [] {
  std::array<Care, 256> care{};
  for (std::size_t c = 0; c < 32; ++c)
    care[c] = kEscaped;
  care[127] = care['"'] = care['\\'] = kEscaped;
  care['['] = care[']'] = care['\''] = care[' '] = kQuoted;
  return care;
}();

Care care_of(char c) {
  return kCare[static_cast<unsigned char>(c)];
}

bool needs_quotes(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return care_of(c) != kPlain; });
}

void append_quoted(std::string_view text, std::string& path) {
  path.reserve(path.size() + text.size() + 2);
  path += '"';
  while (!text.empty()) {
    const auto stop = std::ranges::find(text, kEscaped, care_of);
    path.append(text.begin(), stop);
    text.remove_prefix(static_cast<std::size_t>(stop - text.begin()));
    if (text.empty())
      break;
    const char c = text.front();
    if (c == '"' || c == '\\')
      path.append({'\\', c});
    else
      path += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    text.remove_prefix(1);
  }
  path += '"';
}

}  // namespace

void append_key(const Key& key, std::string& path) {
  if (key.kind == Key::Kind::kRoot)
    return;
  if (key.is_number()) {
    path += fmt::format("[{}]", key.number);
    return;
  }
  if (!path.empty())
    path += '.';
  const bool quoted =
      key.text.empty() || key.quotes == Key::Quotes::kAlways ||
      (key.quotes == Key::Quotes::kAsNeeded && needs_quotes(key.text));
  if (quoted)
    append_quoted(key.text, path);
  else
    path += key.text;
}

void append_key_as_torch(const Key& key, std::string& path) {
  if (key.kind == Key::Kind::kRoot)
    return;
  if (key.kind == Key::Kind::kIndex) {
    path += fmt::format("[{}]", key.number);
    return;
  }
  if (!path.empty())
    path += '.';
  if (key.kind == Key::Kind::kInteger)
    path += fmt::format("{}", key.number);
  else
    path += key.text;
}

}  // namespace postflight
