#pragma once

#include <string_view>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "pickle/value.h"

namespace postflight {

// Parsers for the arguments of protocol 0's opcodes, each a line of text (here
// without its newline); the values are allocated in `arena`. They accept what
// CPython's C unpickler accepts, up to the caps of `limits`.

// INT: a boolean if the line is two characters long and its value 0 or 1.
Result<Value> integer_from_int_line(std::string_view line, Arena& arena,
                                    const Limits& limits);
// LONG: decimal or prefixed digits with an optional L at the end.
Result<Value> integer_from_long_line(std::string_view line, Arena& arena,
                                     const Limits& limits);
Result<Value> float_from_line(std::string_view line, Arena& arena);
// STRING: a quoted Python 2 string with backslash escapes.
Result<Value> legacy_string_from_line(std::string_view line, Arena& arena);
// UNICODE: Latin-1 with \uXXXX and \UXXXXXXXX.
Result<Value> string_from_line(std::string_view line, Arena& arena);
// GET and PUT.
Result<std::uint64_t> memo_key_from_line(std::string_view line);

// The integer of LONG1 and LONG4: little-endian two's complement of any
// length, normalised to its shortest form.
Value integer_from_twos_complement(std::string_view bytes, Arena& arena);

// Values allocated in `arena`.
Value kept_integer(std::int64_t value, Arena& arena);
Value kept_float(double value, Arena& arena);
Value kept_text(Kind kind, std::string_view text, Arena& arena);

}  // namespace postflight
