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

// A range of code points, both ends included.
struct CodePoints {
  char32_t first;
  char32_t last;
};

// The first character of a text. An invalid byte is decoded alone, with its
// value as the code point and size 1, so that decoding resynchronises.
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

// Strict: overlong forms, surrogates and code points past U+10FFFF are invalid.
bool is_utf8(std::string_view text);

// Removes the leading characters up to U+00FF from `text` and writes each as
// one byte to `room`, which is at least as large as the text. Returns how many
// there were.
std::size_t write_latin1(std::string_view& text, char* room);

}  // namespace postflight
