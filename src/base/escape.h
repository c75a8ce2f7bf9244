#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace postflight {

enum class EscapeMode : std::uint8_t {
  kReadable,     // backslashes stay as they are
  kUnambiguous,  // backslashes are doubled, so that the text can be told back
};

// Makes text out of a file fit for a terminal: what would move the cursor, set
// a title, reorder or hide the text beside it is shown instead of done. Control
// characters, bidirectional and invisible ones become \n, \r, \t or \u{202e};
// bytes that are not UTF-8 become \x9b. Everything else stays.
std::string escape_for_terminal(std::string_view text,
                                EscapeMode mode = EscapeMode::kReadable);

// Whether a terminal shows this character and does nothing else with it.
bool is_plain(char32_t code_point);

// How many bytes at the front are printable ASCII.
std::size_t printable_ascii_prefix(std::string_view text);

}  // namespace postflight
