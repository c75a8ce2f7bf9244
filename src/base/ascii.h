#pragma once

#include <string>
#include <string_view>

namespace postflight {

// Character classes independent of the locale.

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr bool is_letter(char c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

constexpr char lowered(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    c = lowered(c);
  return lower;
}

constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kSpaces = " \t\n\r\f\v";

// `text` without leading and trailing characters that are in `around`.
constexpr std::string_view trimmed(std::string_view text,
                                   std::string_view around = kSpaces) {
  const std::size_t begin = text.find_first_not_of(around);
  if (begin == text.npos)
    return {};
  return text.substr(begin, text.find_last_not_of(around) - begin + 1);
}

}  // namespace postflight
