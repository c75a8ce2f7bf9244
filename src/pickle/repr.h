#pragma once

#include <string>
#include <string_view>

namespace postflight {

// Values as Python's repr() writes them. What comes out is safe to print: it
// has no control characters, no unprintable ones and no broken UTF-8.

// A str. Bytes that are no UTF-8 become \xNN, lone surrogates \uNNNN.
// Unassigned code points stay, where Python escapes those that its version of
// Unicode does not know.
std::string repr_string(std::string_view utf8);
// A str with one character a byte, as Python sees a Python 2 str.
std::string repr_latin1(std::string_view text);
// b'...', with every byte beyond ASCII escaped.
std::string repr_bytes(std::string_view bytes);
// The shortest digits that read back as the same number.
std::string repr_float(double value);
// Little-endian two's complement of any length. Beyond 4300 digits, where
// Python refuses to print, it is in hexadecimal: decimal is quadratic work.
std::string repr_integer(std::string_view bytes);

}  // namespace postflight
