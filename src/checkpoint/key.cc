#include "checkpoint/key.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json_string.h"

namespace postflight {
namespace {

bool needs_quotes(std::string_view text) {
  return text.empty() || std::ranges::any_of(text, [](char c) {
           return c == '.' || c == '[' || c == ']' || c == '"' || c == '\'' ||
                  c == ' ' || c == '\\' || static_cast<unsigned char>(c) < 32 ||
                  c == 127;
         });
}

void append_quoted(std::string_view text, std::string& path) {
  path += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      path += '\\';
    if (static_cast<unsigned char>(c) < 32 || c == 127)
      path += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      path += c;
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
  if (needs_quotes(key.text))
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

void append_key_json(const Key& key, std::string& array) {
  if (key.is_number()) {
    array += fmt::format("{}", key.number);
    return;
  }
  if (key.kind != Key::Kind::kOther) {
    std::string text;
    if (append_json_string(key.text, text)) {
      array += text;
      return;
    }
    array += fmt::format("{{\"text\":{},\"escaped\":true}}", text);
    return;
  }
  array += "{\"repr\":";
  const bool plain = append_json_string(key.text, array);
  array += plain ? "}" : ",\"escaped\":true}";
}

}  // namespace postflight
