#pragma once

#include <string>
#include <string_view>

namespace postflight {

// Values as Python's repr() writes them. The result is safe to print: it has no
// control or unprintable characters and no invalid UTF-8.

// A str. Bytes that are not UTF-8 become \xNN, lone surrogates \uNNNN.
// Unassigned code points are kept, where Python escapes those that its version
// of Unicode does not know.
std::string repr_string(std::string_view utf8);
// A str with one character per byte, as Python 3 decodes a Python 2 str.
std::string repr_latin1(std::string_view text);
// b'...', with every non-ASCII byte escaped.
std::string repr_bytes(std::string_view bytes);
// The shortest digits that round-trip.
std::string repr_float(double value);
// Little-endian two's complement of any length. Beyond 4300 digits, where
// Python refuses to print, it is hexadecimal: decimal conversion is quadratic.
std::string repr_integer(std::string_view bytes);

}  // namespace postflight
