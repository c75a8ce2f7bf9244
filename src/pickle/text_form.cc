#include "pickle/text_form.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/utf8.h"

namespace postflight {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z')
    return c - 'A' + 10;
  return 99;
}

// CPython's unpickler passes these lines to C functions, which stop at a NUL
// byte.
std::string_view c_string(std::string_view line) {
  return line.substr(0, line.find('\0'));
}

// A line as error messages quote it.
std::string quoted(std::string_view line) {
  constexpr std::size_t kMost = 40;
  if (line.size() <= kMost)
    return fmt::format("'{}'", line);
  std::size_t end = kMost;
  while (end > 0 && (line[end] & 0xc0) == 0x80)  // not inside a character
    --end;
  return fmt::format("'{}…'", line.substr(0, end));
}

struct Digits {
  bool negative = false;
  unsigned base = 10;
  std::string digits;
};

enum class Syntax { kLiteral, kDecimal };

// Splits an integer as int(text, 0) does, or int(text, 10). Underscores may
// stand between digits; a literal may not start with a zero unless it is zero.
std::optional<Digits> split_integer(std::string_view text, Syntax syntax) {
  Digits result;
  text = trimmed(text);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    result.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  bool after_underscore = true;
  if (syntax == Syntax::kLiteral && text.size() > 1 && text[0] == '0' &&
      digit_value(text[1]) > 9 && text[1] != '_') {
    const char prefix = static_cast<char>(text[1] | 0x20);
    result.base = prefix == 'x'   ? 16
                  : prefix == 'o' ? 8
                  : prefix == 'b' ? 2
                                  : 0;
    if (result.base == 0)
      return std::nullopt;
    text.remove_prefix(2);
    after_underscore = false;  // 0x_ff is fine
  }
  for (const char c : text) {
    if (c == '_') {
      if (after_underscore)
        return std::nullopt;
      after_underscore = true;
      continue;
    }
    if (digit_value(c) >= static_cast<int>(result.base))
      return std::nullopt;
    result.digits += c;
    after_underscore = false;
  }
  if (result.digits.empty() || after_underscore)
    return std::nullopt;
  const bool all_zero =
      result.digits.find_first_not_of('0') == std::string::npos;
  if (syntax == Syntax::kLiteral && result.base == 10 &&
      result.digits[0] == '0' && !all_zero)
    return std::nullopt;
  return result;
}

// Horner's rule over 32-bit limbs, with as many digits at a time as one limb
// holds: quadratic, which the cap on digits bounds.
std::string twos_complement(const Digits& number) {
  std::vector<std::uint32_t> limbs;
  std::uint64_t digits = 0;
  std::uint64_t factor = 1;
  for (std::size_t i = 0; i < number.digits.size(); ++i) {
    digits = digits * number.base +
             static_cast<std::uint64_t>(digit_value(number.digits[i]));
    factor *= number.base;
    if (factor * number.base <= UINT32_MAX && i + 1 < number.digits.size())
      continue;
    for (std::uint32_t& limb : limbs) {
      digits += limb * factor;
      limb = static_cast<std::uint32_t>(digits);
      digits >>= 32;
    }
    if (digits != 0)
      limbs.push_back(static_cast<std::uint32_t>(digits));
    digits = 0;
    factor = 1;
  }
  limbs.push_back(0);  // room for the sign
  if (number.negative) {
    std::uint64_t carry = 1;
    for (std::uint32_t& limb : limbs) {
      carry += static_cast<std::uint32_t>(~limb);
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  return {reinterpret_cast<const char*>(limbs.data()), limbs.size() * 4};
}

Result<Value> integer_from_literal(std::string_view line, Arena& arena,
                                   const Limits& limits) {
  const std::optional<Digits> digits =
      split_integer(c_string(line), Syntax::kLiteral);
  if (!digits)
    return fail(ErrorKind::kCorrupt, "{} is not an integer", quoted(line));
  if (digits->digits.size() > limits.max_integer_digits)
    return fail(ErrorKind::kRefused,
                "an integer has {} digits, more than the {} allowed",
                digits->digits.size(), limits.max_integer_digits);
  return integer_from_twos_complement(twos_complement(*digits), arena);
}

// CPython's INT tries strtol first, which parses 010 as octal 8. A line that
// starts with NUL is empty to strtol, so its value is 0.
std::optional<std::int64_t> strtol_integer(std::string_view line) {
  if (line.empty())
    return std::nullopt;
  const std::string text(c_string(line));
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text.c_str(), &end, 0);
  if (errno != 0 || *end != '\0')
    return std::nullopt;
  return value;
}

std::optional<std::uint32_t> hex_number(std::string_view digits) {
  std::uint32_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return value;
}

// The character for a one-letter escape of a Python string, or 0.
char simple_escape(char c) {
  switch (c) {
    case '\\':
    case '\'':
    case '"':
      return c;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return 0;
  }
}

}  // namespace

Result<Value> integer_from_int_line(std::string_view line, Arena& arena,
                                    const Limits& limits) {
  if (const std::optional<std::int64_t> value = strtol_integer(line)) {
    if (line.size() == 2 && (*value == 0 || *value == 1))
      return Value::boolean(*value == 1);
    return kept_integer(*value, arena);
  }
  return integer_from_literal(line, arena, limits);
}

Result<Value> integer_from_long_line(std::string_view line, Arena& arena,
                                     const Limits& limits) {
  if (!line.empty() && line.back() == 'L')
    line.remove_suffix(1);
  return integer_from_literal(line, arena, limits);
}

Result<Value> float_from_line(std::string_view line, Arena& arena) {
  std::string_view text = c_string(line);
  if (!text.empty() && text[0] == '+')
    text.remove_prefix(1);
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (end != last || text.empty() || error == std::errc::invalid_argument ||
      (text.data() != line.data() && text[0] == '-') ||
      text.find('(') != text.npos)
    return fail(ErrorKind::kCorrupt, "{} is not a number", quoted(line));
  if (error == std::errc::result_out_of_range) {
    value = std::strtod(std::string(text).c_str(), nullptr);
    if (std::isinf(value))
      return fail(ErrorKind::kCorrupt, "{} is too large for a float",
                  quoted(line));
  }
  return kept_float(value, arena);
}

Result<Value> legacy_string_from_line(std::string_view line, Arena& arena) {
  if (line.size() < 2 || line.front() != line.back() ||
      (line.front() != '\'' && line.front() != '"'))
    return fail(ErrorKind::kCorrupt, "the string is not in quotes");
  const std::string_view inside = line.substr(1, line.size() - 2);
  std::string out;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      out += inside[i];
      continue;
    }
    if (++i == inside.size())
      return fail(ErrorKind::kCorrupt, "the string ends with a lone backslash");
    const char c = inside[i];
    if (const char simple = simple_escape(c)) {
      out += simple;
    } else if (c >= '0' && c <= '7') {
      unsigned code = 0;
      std::size_t end = i;
      while (end < inside.size() && end < i + 3 && inside[end] >= '0' &&
             inside[end] <= '7')
        code = code * 8 + static_cast<unsigned>(inside[end++] - '0');
      out += static_cast<char>(code);
      i = end - 1;
    } else if (c == 'x') {
      const std::optional<std::uint32_t> code =
          i + 2 < inside.size() ? hex_number(inside.substr(i + 1, 2))
                                : std::nullopt;
      if (!code)
        return fail(ErrorKind::kCorrupt,
                    "the string has \\x without two hex digits");
      out += static_cast<char>(*code);
      i += 2;
    } else {  // Python keeps unknown escapes
      out += '\\';
      out += c;
    }
  }
  return kept_text(Kind::kLegacyString, out, arena);
}

Result<Value> string_from_line(std::string_view line, Arena& arena) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const char next = i + 1 < line.size() ? line[i + 1] : '\0';
    if (c != '\\' || (next != 'u' && next != 'U')) {
      append_utf8(static_cast<unsigned char>(c), out);
      // A backslash that escapes nothing is literal, and so is a backslash
      // after it: \\u0041 is seven characters.
      if (c == '\\' && next == '\\') {
        out += '\\';
        ++i;
      }
      continue;
    }
    const std::size_t width = next == 'u' ? 4 : 8;
    const std::optional<std::uint32_t> code =
        line.size() - i - 2 >= width ? hex_number(line.substr(i + 2, width))
                                     : std::nullopt;
    if (!code || *code > 0x10ffff)
      return fail(ErrorKind::kCorrupt, "the string has a bad \\{} escape",
                  next);
    append_utf8(*code, out);
    i += 1 + width;
  }
  return kept_text(Kind::kString, out, arena);
}

Result<std::uint64_t> memo_key_from_line(std::string_view line) {
  const std::optional<Digits> digits =
      split_integer(c_string(line), Syntax::kDecimal);
  std::uint64_t key = 0;
  if (!digits ||
      std::from_chars(digits->digits.data(),
                      digits->digits.data() + digits->digits.size(), key)
              .ec != std::errc() ||
      (digits->negative && key != 0))
    return fail(ErrorKind::kCorrupt, "{} is not a memo index", quoted(line));
  return key;
}

Value integer_from_twos_complement(std::string_view bytes, Arena& arena) {
  const auto at = [&bytes](std::size_t i) {
    return static_cast<unsigned char>(bytes[i]);
  };
  std::size_t size = bytes.size();
  while (size > 1 && ((at(size - 1) == 0 && at(size - 2) < 0x80) ||
                      (at(size - 1) == 0xff && at(size - 2) >= 0x80)))
    --size;
  if (size > 8)
    return kept_text(Kind::kBigInteger, bytes.substr(0, size), arena);
  std::uint64_t value =
      size > 0 && at(size - 1) >= 0x80 ? ~std::uint64_t{0} : 0;
  if (size > 0)
    std::memcpy(&value, bytes.data(), size);
  return kept_integer(static_cast<std::int64_t>(value), arena);
}

Value kept_integer(std::int64_t value, Arena& arena) {
  return Value::is_small(value) ? Value::small(value)
                                : Value::wide_integer(arena.make(value));
}

Value kept_float(double value, Arena& arena) {
  return Value::native_float(arena.make(value));
}

Value kept_text(Kind kind, std::string_view text, Arena& arena) {
  // Identity is an address, so even an empty text needs a unique one.
  char* const room =
      arena.allocate_text(8 + std::max<std::size_t>(text.size(), 1));
  const std::uint64_t size = text.size();
  std::memcpy(room, &size, 8);
  if (!text.empty())
    std::memcpy(room + 8, text.data(), text.size());
  return Value::text(kind, Value::Prefix::kEight, room + 8);
}

}  // namespace postflight
