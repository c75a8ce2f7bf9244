#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace postflight {

enum class EscapeMode : std::uint8_t {
  kReadable,     // backslashes are left alone
  kUnambiguous,  // backslashes are doubled, so that it can be unescaped
};

// Makes untrusted text safe for a terminal: anything that would move the
// cursor, set a title, or reorder or hide nearby text is escaped. Control,
// bidirectional and invisible characters become \n, \r, \t or \u{202e}; bytes
// that are not UTF-8 become \x9b. Everything else is unchanged.
std::string escape_for_terminal(std::string_view text,
                                EscapeMode mode = EscapeMode::kReadable);

// A word as a shell reads it back, to be pasted: quoted where that is needed,
// and safe for a terminal.
std::string shell_quoted(std::string_view word);

// Whether a terminal merely displays this character.
bool is_plain(char32_t code_point);

// How many bytes at the front are printable ASCII.
std::size_t printable_ascii_prefix(std::string_view text);

}  // namespace postflight
