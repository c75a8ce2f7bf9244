#include "base/json_string.h"

#include "base/escape.h"
#include "base/utf8.h"

#include <cstdint>
#include <iterator>

#include <fmt/format.h>

namespace postflight {

namespace {

void append_unit(std::uint32_t unit, std::string& out) {
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit);
}

void append_code_point(char32_t code_point, std::string& out) {
  const auto value = static_cast<std::uint32_t>(code_point);
  if (value < 0x10000) {
    append_unit(value, out);
    return;
  }
  append_unit(0xD800 + ((value - 0x10000) >> 10), out);
  append_unit(0xDC00 + ((value - 0x10000) & 0x3FF), out);
}

// `exact` is false for text with invalid bytes in it.
void append_ascii(std::string_view text, bool exact, std::string& out) {
  for (std::size_t special; !text.empty(); text.remove_prefix(special + 1)) {
    special = text.find_first_of("\"\\");
    out += text.substr(0, special);
    if (special == std::string_view::npos)
      return;
    if (text[special] == '"')
      out += "\\\"";
    else
      out += exact ? "\\\\" : "\\\\\\\\";
  }
}

void append_other(const Utf8Character& character, std::string_view bytes,
                  std::string& out) {
  if (character.kind == Utf8Kind::kInvalid)
    fmt::format_to(std::back_inserter(out), "\\\\x{:02x}",
                   static_cast<std::uint32_t>(character.code_point));
  else if (character.kind == Utf8Kind::kCharacter &&
           is_plain(character.code_point))
    out += bytes;
  else if (character.code_point == '\n')
    out += "\\n";
  else if (character.code_point == '\t')
    out += "\\t";
  else if (character.code_point == '\r')
    out += "\\r";
  else
    append_code_point(character.code_point, out);
}

bool has_invalid_byte(std::string_view text) {
  while (!text.empty()) {
    if (const std::size_t size = printable_ascii_prefix(text); size > 0) {
      text.remove_prefix(size);
      continue;
    }
    const Utf8Character character = decode_utf8(text);
    if (character.kind == Utf8Kind::kInvalid)
      return true;
    text.remove_prefix(character.size);
  }
  return false;
}

}  // namespace

bool append_json_string(std::string_view text, std::string& out) {
  const bool exact = !has_invalid_byte(text);
  out += '"';
  while (!text.empty()) {
    if (const std::size_t size = printable_ascii_prefix(text); size > 0) {
      append_ascii(text.substr(0, size), exact, out);
      text.remove_prefix(size);
      continue;
    }
    const Utf8Character character = decode_utf8(text);
    append_other(character, text.substr(0, character.size), out);
    text.remove_prefix(character.size);
  }
  out += '"';
  return exact;
}

}  // namespace postflight
