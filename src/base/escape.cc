#include "base/escape.h"

#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

namespace postflight {

namespace {

// Sorted. Emoji joined by U+200D are split up by this, which is better than
// letting two different names look the same.
constexpr std::array kNotPlain = {
    CodePoints{0x0000, 0x001F},  // C0 controls
    CodePoints{0x007F, 0x009F},  // DEL, C1 controls
    CodePoints{0x00AD, 0x00AD},  // soft hyphen
    CodePoints{0x034F, 0x034F},  // combining grapheme joiner
    CodePoints{0x061C, 0x061C},  // Arabic letter mark
    CodePoints{0x115F, 0x1160},  // Hangul fillers
    CodePoints{0x17B4, 0x17B5},  // Khmer inherent vowels
    CodePoints{0x180E, 0x180E},  // Mongolian vowel separator
    CodePoints{0x200B,
               0x200F},  // zero width space and joiners, direction marks
    CodePoints{0x2028, 0x202E},    // line separators, embeddings, overrides
    CodePoints{0x2060, 0x206F},    // word joiner, isolates, invisible operators
    CodePoints{0x3164, 0x3164},    // Hangul filler
    CodePoints{0xFEFF, 0xFEFF},    // byte order mark
    CodePoints{0xFFA0, 0xFFA0},    // half width Hangul filler
    CodePoints{0xFFF9, 0xFFFB},    // interlinear annotations
    CodePoints{0x1BCA0, 0x1BCA3},  // shorthand format controls
    CodePoints{0x1D173, 0x1D17A},  // musical format controls
    CodePoints{0xE0000, 0xE007F},  // tags
};

bool is_printable_ascii(char byte) {
  return byte >= 0x20 && byte <= 0x7E;
}

void append_escape(const Utf8Character& character, std::string& out) {
  if (character.kind == Utf8Kind::kInvalid) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}",
                   static_cast<std::uint32_t>(character.code_point));
    return;
  }
  switch (character.code_point) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{{{:x}}}",
                     static_cast<std::uint32_t>(character.code_point));
  }
}

void append_ascii(std::string_view text, EscapeMode mode, std::string& out) {
  if (mode == EscapeMode::kReadable) {
    out += text;
    return;
  }
  for (const char byte : text)
    out.append(byte == '\\' ? 2 : 1, byte);
}

}  // namespace

bool is_plain(char32_t code_point) {
  const auto* range =
      std::ranges::lower_bound(kNotPlain, code_point, {}, &CodePoints::last);
  return range == kNotPlain.end() || code_point < range->first;
}

std::size_t printable_ascii_prefix(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighBits = 0x80 * kOnes;
  std::size_t size = 0;
  while (text.size() - size >= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + size, sizeof(word));
    // Eight bytes at once. For bytes below 0x80, adding 1 sets the high bit
    // only for 0x7F, adding 0x60 only from 0x20 on; no sum carries.
    const std::uint64_t low_bits = word & ~kHighBits;
    const std::uint64_t is_del = low_bits + kOnes;
    const std::uint64_t is_graphic = low_bits + 0x60 * kOnes;
    if (((word | is_del | ~is_graphic) & kHighBits) != 0)
      break;
    size += sizeof(word);
  }
  while (size < text.size() && is_printable_ascii(text[size]))
    ++size;
  return size;
}

std::string escape_for_terminal(std::string_view text, EscapeMode mode) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (const std::size_t size = printable_ascii_prefix(text); size > 0) {
      append_ascii(text.substr(0, size), mode, out);
      text.remove_prefix(size);
      continue;
    }
    const Utf8Character character = decode_utf8(text);
    if (character.kind == Utf8Kind::kCharacter &&
        is_plain(character.code_point))
      out += text.substr(0, character.size);
    else
      append_escape(character, out);
    text.remove_prefix(character.size);
  }
  return out;
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos)
    return std::string(word);
  // What a terminal would act on is only readable in bash's $'...', byte by
  // byte.
  const bool is_plain_text = escape_for_terminal(word) == word;
  std::string out = is_plain_text ? "'" : "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain_text)
      out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    else if (c == '\'' || c == '\\')
      out += std::string("\\") + c;
    else if (byte < 0x20 || byte >= 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "'";
}

}  // namespace postflight
