#include "cli/arguments/parameter.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace postflight {
namespace {

template <class Number>
Result<> read_number(std::string_view word, Number& target) {
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, target);
  if (error == std::errc::result_out_of_range)
    return fail(ErrorKind::kUsage, "'{}' is out of range", word);
  if (error != std::errc() || stop != end)
    return fail(ErrorKind::kUsage, "'{}' is not valid: give a whole number{}",
                word, std::is_signed_v<Number> ? "" : ", 0 or more");
  return {};
}

// "auto, always or never"
std::string alternatives(const std::vector<std::string>& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool last = i + 1 == choices.size();
    text += fmt::format("{}{}", i == 0 ? "" : last ? " or " : ", ", choices[i]);
  }
  return text;
}

}  // namespace

Result<> read_word(std::string_view word, std::string& target) {
  target = word;
  return {};
}
Result<> read_word(std::string_view word, std::int32_t& target) {
  return read_number(word, target);
}
Result<> read_word(std::string_view word, std::int64_t& target) {
  return read_number(word, target);
}
Result<> read_word(std::string_view word, std::uint32_t& target) {
  return read_number(word, target);
}
Result<> read_word(std::string_view word, std::uint64_t& target) {
  return read_number(word, target);
}

Parameter& Parameter::required() {
  is_required = true;
  return *this;
}

Parameter& Parameter::one_of(std::vector<std::string> values) {
  choices = std::move(values);
  return *this;
}

Parameter& Parameter::between(std::uint64_t least, std::uint64_t most) {
  range = {least, most};
  return *this;
}

Parameter& Parameter::separated_by(char delimiter) {
  separator = delimiter;
  return *this;
}

Parameter& Parameter::several() {
  takes_several = true;
  return *this;
}

Result<> Parameter::store_one(std::string_view word) const {
  if (!choices.empty() && std::ranges::find(choices, word) == choices.end())
    return fail(ErrorKind::kUsage, "'{}' is not valid: give {}", word,
                alternatives(choices));
  if (range) {
    std::uint64_t number = 0;
    TRY(read_number(word, number));
    if (number < range->first || number > range->second)
      return fail(ErrorKind::kUsage, "'{}' is not valid: give {} to {}", word,
                  range->first, range->second);
  }
  return take(word);
}

Result<> Parameter::store(std::string_view word) const {
  while (separator != '\0' && word.find(separator) != word.npos) {
    TRY(store_one(word.substr(0, word.find(separator))).in(name()));
    word.remove_prefix(word.find(separator) + 1);
  }
  return store_one(word).in(name());
}

}  // namespace postflight
