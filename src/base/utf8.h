#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace postflight {

enum class Utf8Kind : std::uint8_t {
  kCharacter,  // well formed
  kSurrogate,  // U+D800 to U+DFFF in three bytes, as Python's surrogatepass
  kInvalid,    // a byte that is part of neither
};

// What lies at the front of a text. An invalid byte is taken alone: its value
// is the code point and 1 the size, so the next character is found again.
struct Utf8Character {
  char32_t code_point;
  std::uint8_t size;
  Utf8Kind kind;

  bool operator==(const Utf8Character&) const = default;
};

// `text` must not be empty.
Utf8Character decode_utf8(std::string_view text);

// Appends a code point up to U+10FFFF.
void append_utf8(char32_t code_point, std::string& out);

// Strict: overlong forms, surrogates and code points past U+10FFFF are not.
bool is_utf8(std::string_view text);

// Takes the characters up to U+00FF away from the front of a text and writes
// them as a byte each, into no more room than the text takes. Returns how many
// there were; what is left begins with another.
std::size_t write_latin1(std::string_view& text, char* room);

}  // namespace postflight
