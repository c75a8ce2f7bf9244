#include "pickle/repr.h"

#include "base/escape.h"
#include "base/utf8.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include <fmt/format.h>

namespace postflight {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// What Python escapes: Unicode 14's controls, formats, separators other than
// the space, surrogates and private use, closed over unassigned gaps.
constexpr Range kUnprintable[] = {
    {0x0, 0x1f},         {0x7f, 0xa0},       {0xad, 0xad},
    {0x600, 0x605},      {0x61c, 0x61c},     {0x6dd, 0x6dd},
    {0x70f, 0x70f},      {0x890, 0x891},     {0x8e2, 0x8e2},
    {0x1680, 0x1680},    {0x180e, 0x180e},   {0x2000, 0x200f},
    {0x2028, 0x202f},    {0x205f, 0x206f},   {0x3000, 0x3000},
    {0xd800, 0xf8ff},    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},
    {0x110bd, 0x110bd},  {0x110cd, 0x110cd}, {0x13430, 0x13438},
    {0x1bca0, 0x1bca3},  {0x1d173, 0x1d17a}, {0xe0001, 0xe007f},
    {0xf0000, 0x10ffff},
};

bool printable(char32_t code) {
  // Noncharacters: the last two of each plane, and these.
  if ((code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef))
    return false;
  const Range* range =
      std::ranges::lower_bound(kUnprintable, code, {}, &Range::last);
  // Python prints some characters that are not safe for a terminal.
  return (range == std::end(kUnprintable) || code < range->first) &&
         is_plain(code);
}

// Python prefers single quotes unless that requires escapes.
char quote_for(std::string_view text) {
  return text.find('\'') != text.npos && text.find('"') == text.npos ? '"'
                                                                     : '\'';
}

void append_escaped(std::string& out, char32_t code_point) {
  const std::uint32_t code = code_point;
  auto end = std::back_inserter(out);
  if (code < 0x100)
    fmt::format_to(end, "\\x{:02x}", code);
  else if (code < 0x10000)
    fmt::format_to(end, "\\u{:04x}", code);
  else
    fmt::format_to(end, "\\U{:08x}", code);
}

void append_ascii(std::string& out, char c, char quote) {
  if (c == quote || c == '\\')
    (out += '\\') += c;
  else if (c == '\n')
    out += "\\n";
  else if (c == '\r')
    out += "\\r";
  else if (c == '\t')
    out += "\\t";
  else if (c < ' ' || c == 0x7f)
    append_escaped(out, static_cast<unsigned char>(c));
  else
    out += c;
}

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

// The magnitude of a two's complement number, in 32-bit limbs.
std::vector<std::uint32_t> magnitude(std::string_view bytes, bool negative) {
  std::vector<std::uint32_t> limbs(bytes.size() / 4 + 1);
  std::uint32_t carry = negative ? 1 : 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const std::uint32_t sum = carry + (negative ? byte ^ 0xffu : byte);
    limbs[i / 4] |= (sum & 0xff) << (i % 4 * 8);
    carry = sum >> 8;
  }
  while (!limbs.empty() && limbs.back() == 0)
    limbs.pop_back();
  return limbs;
}

std::string decimal(std::vector<std::uint32_t> limbs) {
  constexpr std::uint32_t kGroup = 1'000'000'000;
  std::vector<std::uint32_t> groups;  // least significant first
  while (!limbs.empty()) {
    std::uint64_t rest = 0;
    for (auto limb = limbs.rbegin(); limb != limbs.rend(); ++limb) {
      rest = rest << 32 | *limb;
      *limb = static_cast<std::uint32_t>(rest / kGroup);
      rest %= kGroup;
    }
    groups.push_back(static_cast<std::uint32_t>(rest));
    while (!limbs.empty() && limbs.back() == 0)
      limbs.pop_back();
  }
  if (groups.empty())
    return "0";
  std::string text = std::to_string(groups.back());
  for (std::size_t i = groups.size() - 1; i-- > 0;)
    fmt::format_to(std::back_inserter(text), "{:09}", groups[i]);
  return text;
}

std::string hexadecimal(const std::vector<std::uint32_t>& limbs) {
  std::string text = fmt::format("{:#x}", limbs.back());
  for (std::size_t i = limbs.size() - 1; i-- > 0;)
    fmt::format_to(std::back_inserter(text), "{:08x}", limbs[i]);
  return text;
}

}  // namespace

std::string repr_string(std::string_view utf8) {
  const char quote = quote_for(utf8);
  std::string out(1, quote);
  while (!utf8.empty()) {
    const Utf8Character next = decode_utf8(utf8);
    if (next.code_point < 0x80)
      append_ascii(out, utf8[0], quote);
    else if (next.kind == Utf8Kind::kCharacter && printable(next.code_point))
      out += utf8.substr(0, next.size);
    else
      append_escaped(out, next.code_point);
    utf8.remove_prefix(next.size);
  }
  return out += quote;
}

std::string repr_latin1(std::string_view text) {
  const char quote = quote_for(text);
  std::string out(1, quote);
  for (const char c : text) {
    const char32_t code = static_cast<unsigned char>(c);
    if (is_ascii(c))
      append_ascii(out, c, quote);
    else if (printable(code))
      append_utf8(code, out);
    else
      append_escaped(out, code);
  }
  return out += quote;
}

std::string repr_bytes(std::string_view bytes) {
  const char quote = quote_for(bytes);
  std::string out = {'b', quote};
  for (const char c : bytes) {
    if (is_ascii(c))
      append_ascii(out, c, quote);
    else
      append_escaped(out, static_cast<unsigned char>(c));
  }
  return out += quote;
}

std::string repr_float(double value) {
  if (std::isnan(value))
    return "nan";  // fmt would show its sign
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == text.npos)
    text += ".0";
  return text;
}

std::string repr_integer(std::string_view bytes) {
  constexpr std::size_t kMaxDecimalLimbs = 447;  // enough for 4300 digits
  const bool negative = !bytes.empty() && !is_ascii(bytes.back());
  std::vector<std::uint32_t> limbs = magnitude(bytes, negative);
  const std::string digits = limbs.size() <= kMaxDecimalLimbs
                                 ? decimal(std::move(limbs))
                                 : hexadecimal(limbs);
  return negative ? '-' + digits : digits;
}

}  // namespace postflight
